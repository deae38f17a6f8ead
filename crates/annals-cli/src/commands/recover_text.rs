//! What `annals recover` says: the plan, and the report of a salvage.

use std::path::Path;

use annals::storage::{Access, FileDirectory};
use annals::{Fate, Inspection, Run, Salvaged};
use serde_json::{Value, json};

use crate::commands::info;
use crate::output::{count, plain};

/// Says what is there, what would be kept, cut and saved.
pub(crate) fn plan(file: &Path, inspection: &Inspection) -> Vec<String> {
    let shown = plain(&file.display().to_string());
    let Inspection { end, len, header, .. } = inspection;
    let damaged = damaged_copies(inspection);
    if inspection.closed && damaged.is_empty() {
        return vec![format!("nothing to do: {shown} was closed properly")];
    }
    let kept = match inspection.last {
        None => "no transaction".to_owned(),
        Some(last) => format!(
            "{}, up to position {}; the last was committed {} at level {}",
            txids(header.first_txid, end.txid),
            end.position,
            last.time,
            last.level.name()
        ),
    };
    if !inspection.has_tail() && !damaged.is_empty() {
        return vec![
            format!("{shown} is whole, but {damaged}"),
            format!("keep: {kept}"),
            "cut: nothing, so no copy is made".to_owned(),
            "repair: what is damaged is written again from what is whole".to_owned(),
        ];
    }
    if !inspection.has_tail() {
        return vec![
            format!("{shown} was not closed properly, but it is whole: only zeros follow the end"),
            format!("keep: {kept}"),
            "nothing to do: whatever opens it for writing goes on from there".to_owned(),
        ];
    }
    let mark = format!("{}-{:016x}", end.txid, end.chain);
    let mut lines = vec![
        match info::opener(inspection) {
            Some(opener) => format!("{shown} was not closed properly by {opener}"),
            None => format!("{shown} was not closed properly"),
        },
        format!("keep: {kept}"),
        format!("cut: all behind that, up to position {len}"),
    ];
    lines.extend(info::tail(inspection).into_iter().map(|line| format!("  {line}")));
    lines.push(match inspection.may_hold_a_commit() {
        true => plain(&format!(
            "save: what is cut, at most 64 MiB of it, as {}",
            beside(file, &format!("tail-{mark}"))
        )),
        false => "save: nothing, for no transaction can be in what is cut".to_owned(),
    });
    if !damaged.is_empty() {
        lines.push(format!("repair: {damaged}, and is written again"));
    }
    lines.push(plain(&format!(
        "copy: the whole file before that, as {}",
        beside(file, &format!("before-recovery-{mark}"))
    )));
    lines
}

/// Says which copies are damaged of what is written more than once; nothing if none is.
fn damaged_copies(inspection: &Inspection) -> String {
    let headers = match inspection.damaged_headers {
        0 => None,
        1 => Some("1 of the 3 copies of its header is damaged".to_owned()),
        damaged => Some(format!("{damaged} of the 3 copies of its header are damaged")),
    };
    let chain = inspection
        .wrong_chain
        .map(|position| format!("the chain stored before position {position} is wrong"));
    let slots = info::torn_slots(inspection);
    headers.into_iter().chain(chain).chain(slots).collect::<Vec<_>>().join(", and ")
}

/// Says what a new file is called that is made for what is saved of a file: beside that, wherever a link
/// leads, under a name that isn't taken.
fn beside(file: &Path, kind: &str) -> String {
    let Ok((directory, name)) = FileDirectory::split(file) else {
        return format!("{}.{kind}", file.display());
    };
    let storage = directory.open(&name, Access::Read).ok();
    let elsewhere = storage.and_then(|storage| directory.for_copies(&*storage));
    let directory = elsewhere.unwrap_or(directory);
    let taken = directory.list().unwrap_or_default();
    let base = format!("{name}.{kind}");
    let mut unused = base.clone();
    let mut attempt = 1;
    while taken.contains(&unused) {
        attempt += 1;
        unused = format!("{base}-{attempt}");
    }
    directory.display(&unused)
}

fn txids(first: u64, last: u64) -> String {
    if first == last {
        format!("transaction {first}")
    } else {
        format!("transactions {first} to {last}")
    }
}

/// Says what a salvage gave.
pub(crate) fn salvage_lines(new: &Path, salvaged: &Salvaged) -> Vec<String> {
    let transactions = count(salvaged.transactions, "transaction");
    let last = salvaged.last_time.map(|time| format!(", the last of {time}")).unwrap_or_default();
    let mut lines = vec![format!("wrote {}: {transactions}{last}", new.display())];
    lines.extend(salvaged.runs.iter().map(run));
    for skipped in &salvaged.skipped {
        let bytes = count(skipped.bytes, "byte");
        lines.push(format!("skipped: {bytes} from position {} on", skipped.position));
    }
    if salvaged.headers == 0 {
        lines.push(
            "note: no copy of the header verifies; whose journal it was is not known".to_owned(),
        );
    }
    let unfit = salvaged.count(|fate| matches!(fate, Fate::Unfit(_)));
    if unfit > 0 {
        lines.push(format!(
            "note: {} left out, for what {} was lost with others",
            if unfit == 1 {
                "1 transaction is".to_owned()
            } else {
                format!("{unfit} transactions are")
            },
            if unfit == 1 { "it changes" } else { "they change" }
        ));
    }
    let lost = salvaged.runs.iter().position(|run| run.fate != Fate::Kept);
    let kept = salvaged.runs.iter().rposition(|run| run.fate == Fate::Kept);
    match lost {
        None if salvaged.slots == 0 => lines.push(
            "note: no slot verifies, which would tell how far the journal went; whether transactions \
             followed is not known"
                .to_owned(),
        ),
        None if salvaged.skipped.is_empty() => lines.push("nothing was lost".to_owned()),
        None => lines.push(
            "note: whether transactions followed the last that was kept is not known".to_owned(),
        ),
        Some(lost) if kept.is_some_and(|kept| lost < kept) => lines.push(
            "note: transactions behind the first that is missing were kept as they were written; if a \
             missing one changed the schema or rows, look at the result before you rely on it"
                .to_owned(),
        ),
        Some(_) => {}
    }
    lines
}

fn run(run: &Run) -> String {
    let which = txids(run.first, run.last);
    let place = run.position.map(|at| format!(" from position {at} on")).unwrap_or_default();
    match &run.fate {
        Fate::Kept => format!("kept: {which}"),
        Fate::Lost => format!("lost: {which}: no frame of that verifies"),
        Fate::Incomplete => {
            format!("lost: {which}{place}: frames of that don't verify, or may be missing")
        }
        Fate::Unfit(why) => {
            let (verifies, does) =
                if run.first == run.last { ("verifies", "doesn't") } else { ("verify", "don't") };
            format!(
                "left out: {which}{place}, which {verifies}, but {does} fit without what is lost: {why}"
            )
        }
        _ => format!("lost: {which}"),
    }
}

/// Gives the same for programs.
pub(crate) fn salvage_json(new: &Path, salvaged: &Salvaged) -> Value {
    let run = |run: &Run| {
        let (fate, why) = match &run.fate {
            Fate::Kept => ("kept", None),
            Fate::Incomplete => ("incomplete", None),
            Fate::Unfit(why) => ("unfit", Some(why)),
            _ => ("lost", None),
        };
        json!({
            "first": run.first,
            "last": run.last,
            "position": run.position,
            "fate": fate,
            "why": why,
        })
    };
    let skipped =
        |skipped: &annals::Skipped| json!({ "position": skipped.position, "bytes": skipped.bytes });
    json!({
        "file": new.display().to_string(),
        "transactions": salvaged.transactions,
        "last_time": salvaged.last_time.map(|time| time.to_string()),
        "header_copies": salvaged.headers,
        "slots": salvaged.slots,
        "runs": salvaged.runs.iter().map(run).collect::<Vec<_>>(),
        "skipped": salvaged.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}
