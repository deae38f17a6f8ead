//! The text of `annals recover --salvage`.

use std::path::Path;

use annals_tools::{Fate, Restored, Run, Salvaged};
use serde_json::{Value, json};

use crate::commands::recover_text::txids;
use crate::output::count;

/// Prints the result of a salvage.
pub(crate) fn lines(new: &Path, salvaged: &Salvaged) -> Vec<String> {
    let transactions = count(salvaged.transactions, "transaction");
    let last = salvaged.last_time.map(|time| format!(", the last of {time}")).unwrap_or_default();
    let mut lines = vec![format!("wrote {}: {transactions}{last}", new.display())];
    lines.extend(salvaged.runs.iter().map(|it| run(salvaged, it)));
    for gap in &salvaged.skipped {
        let bytes = count(gap.bytes, "byte");
        let place = segment(salvaged, gap.segment);
        lines.push(format!("skipped: {bytes} from position {} on{place}", gap.position));
    }
    let missing = salvaged.missing.iter();
    lines.extend(missing.map(|number| format!("missing: segment {number} of the journal")));
    let strangers = salvaged.strangers.iter();
    lines.extend(strangers.map(|name| format!("not read: {name}, which is of another journal")));
    let replaced = salvaged.replaced.iter();
    lines.extend(replaced.map(|name| {
        format!("not read: {name}, which is older than the kept segment of its number beside it")
    }));
    lines.extend(salvaged.restored.iter().map(restored));
    let unusable = salvaged.unusable.iter();
    lines.extend(unusable.map(|why| format!("note: a state that is known can't be used: {why}")));
    lines.extend(notes(salvaged));
    lines
}

/// Prints further facts.
fn notes(salvaged: &Salvaged) -> Vec<String> {
    let mut notes = Vec::new();
    if salvaged.segments.iter().all(|segment| segment.headers == 0) {
        notes.push(
            "note: no copy of the header verifies; whose journal it was is not known".to_owned(),
        );
    }
    let unfit = salvaged.count(|fate| matches!(fate, Fate::Unfit(_)));
    if unfit > 0 {
        notes.push(format!(
            "note: {} left out, for what {} was lost with others",
            if unfit == 1 {
                "1 transaction is".to_owned()
            } else {
                format!("{unfit} transactions are")
            },
            if unfit == 1 { "it changes" } else { "they change" }
        ));
    }
    if salvaged.count(|fate| *fate == Fate::Unproven) > 0 {
        notes.push(
            "note: what isn't proven may be of this history all the same, or be bytes that somebody stored in a \
             value: --unproven takes it; look at the result before you rely on it"
                .to_owned(),
        );
    }
    let lost = salvaged.runs.iter().position(|run| run.fate != Fate::Kept);
    let kept = salvaged.runs.iter().rposition(|run| run.fate == Fate::Kept);
    match lost {
        None if salvaged.segments.last().is_none_or(|last| last.slots == 0) => notes.push(
            "note: no slot verifies, which would tell how far the journal went; whether transactions \
             followed is not known"
                .to_owned(),
        ),
        None if salvaged.is_complete() => notes.push("nothing was lost".to_owned()),
        None if salvaged.runs.is_empty() => notes.push(
            "note: no transaction was found, and not all of the head verifies: whether there was one is not known"
                .to_owned(),
        ),
        None => notes.push(
            "note: whether transactions followed the last that was kept is not known".to_owned(),
        ),
        Some(lost) if salvaged.restored.is_empty() && kept.is_some_and(|kept| lost < kept) => {
            notes.push(
                "note: transactions after the first that is missing were kept as they were written; if a \
                 missing one changed the schema or rows, look at the result before you rely on it"
                    .to_owned(),
            );
        }
        Some(_) => {}
    }
    notes
}

/// Names the segment, if there are several.
fn segment(salvaged: &Salvaged, number: u64) -> String {
    match salvaged.segments.len() {
        0 | 1 => String::new(),
        _ => format!(" of segment {number}"),
    }
}

fn run(salvaged: &Salvaged, run: &Run) -> String {
    let which = txids(run.first, run.last);
    let is_one = run.first == run.last;
    let place =
        run.position.map(|at| format!(" from position {at} on{}", segment(salvaged, run.segment)));
    let place = place.unwrap_or_default();
    match &run.fate {
        Fate::Kept => format!("kept: {which}"),
        Fate::Lost => format!("lost: {which}: no frame of that verifies"),
        Fate::Incomplete => {
            format!("lost: {which}{place}: frames of that don't verify, or may be missing")
        }
        Fate::Unproven => {
            let verifies = if is_one { "verifies" } else { "verify" };
            format!(
                "left out: {which}{place}, which {verifies}, but nothing proves them to be of this history"
            )
        }
        Fate::Unfit(why) => {
            let (verifies, does) =
                if is_one { ("verifies", "doesn't") } else { ("verify", "don't") };
            format!(
                "left out: {which}{place}, which {verifies}, but {does} fit without what is lost: {why}"
            )
        }
        _ => format!("lost: {which}"),
    }
}

fn restored(restored: &Restored) -> String {
    let Restored { txid, from, commands, inserted, updated, deleted, blobs, lost_blobs } = restored;
    let mut parts = Vec::new();
    for (number, what) in [
        (commands, "schema command"),
        (inserted, "inserted row"),
        (updated, "updated row"),
        (deleted, "deleted row"),
        (blobs, "blob"),
    ] {
        if *number > 0 {
            parts.push(count(*number, what));
        }
    }
    let mut line = format!(
        "restored: the state after transaction {txid}, which {from} has: {}",
        parts.join(", ")
    );
    if *lost_blobs > 0 {
        line.push_str(&format!("; {} lost", count(*lost_blobs, "blob value")));
    }
    line
}

/// Returns the same for programs.
pub(crate) fn object(new: &Path, salvaged: &Salvaged) -> Value {
    let run = |run: &Run| {
        let (fate, why) = match &run.fate {
            Fate::Kept => ("kept", None),
            Fate::Incomplete => ("incomplete", None),
            Fate::Unproven => ("unproven", None),
            Fate::Unfit(why) => ("unfit", Some(why)),
            _ => ("lost", None),
        };
        json!({
            "first": run.first,
            "last": run.last,
            "segment": run.segment,
            "position": run.position,
            "fate": fate,
            "why": why,
        })
    };
    let segments = salvaged.segments.iter().map(|segment| {
        json!({
            "number": segment.number,
            "file": segment.file,
            "header_copies": segment.headers,
            "slots": segment.slots,
        })
    });
    let gaps = salvaged
        .skipped
        .iter()
        .map(|gap| json!({ "segment": gap.segment, "position": gap.position, "bytes": gap.bytes }));
    let restored = salvaged.restored.iter().map(|it| {
        json!({
            "txid": it.txid.0,
            "from": it.from,
            "commands": it.commands,
            "inserted": it.inserted,
            "updated": it.updated,
            "deleted": it.deleted,
            "blobs": it.blobs,
            "lost_blobs": it.lost_blobs,
        })
    });
    json!({
        "file": new.display().to_string(),
        "transactions": salvaged.transactions,
        "last_time": salvaged.last_time.map(|time| time.to_string()),
        "segments": segments.collect::<Vec<_>>(),
        "missing": salvaged.missing,
        "strangers": salvaged.strangers,
        "replaced": salvaged.replaced,
        "runs": salvaged.runs.iter().map(run).collect::<Vec<_>>(),
        "skipped": gaps.collect::<Vec<_>>(),
        "restored": restored.collect::<Vec<_>>(),
        "unusable": salvaged.unusable,
    })
}
