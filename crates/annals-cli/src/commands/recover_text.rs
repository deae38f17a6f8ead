//! What `annals recover` says: the plan, and the report of a salvage.

use std::path::Path;

use annals::{Fate, Inspection, Run, Salvaged};
use serde_json::{Value, json};

use crate::commands::info;
use crate::output::{count, plain};

/// Says what is there, what would be kept, cut and saved.
pub(crate) fn plan(file: &Path, inspection: &Inspection) -> Vec<String> {
    let shown = plain(&file.display().to_string());
    let Inspection { end, len, header, .. } = inspection;
    if inspection.closed {
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
    if !inspection.has_tail() {
        return vec![
            format!("{shown} was not closed properly, but it is whole: only zeros follow the end"),
            format!("keep: {kept}"),
            "nothing to do: whatever opens it for writing goes on from there".to_owned(),
        ];
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
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
        true => plain(&format!("save: what is cut, at most 64 MiB of it, as {name}.tail-{mark}")),
        false => "save: nothing, for no transaction can be in what is cut".to_owned(),
    });
    lines.push(plain(&format!(
        "copy: the whole file before that, as {name}.before-recovery-{mark}"
    )));
    lines
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
            format!(
                "left out: {which}{place}, which verifies, but doesn't fit without what is lost: {why}"
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
        "runs": salvaged.runs.iter().map(run).collect::<Vec<_>>(),
        "skipped": salvaged.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}
