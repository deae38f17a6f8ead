//! `annals info`: the header and the contents of a file.

use std::path::{Path, PathBuf};

use annals::journal::format::{Live, Slot};
use annals::journal::{Copies, Erasure, Survey};
use annals::{ErrorKind, Result, Schema, View};
use annals_tools::{Examination, Inspection};
use clap::Args;

use super::info_json::{Found, damaged_copy};
use crate::Outcome;
use crate::commands::{info_image, info_json};
use crate::output::{Output, count, hex, plain};
use crate::progress;

/// Print the contents of a file: header, checkpoints, end, times, tables and indexes
///
/// Reads without a lock and changes nothing. Of a damaged file it prints the readable part, and a line `damage: ..`
/// describes the rest.
///
/// Reads as little as opening the file does. Where there is an image, that is the image and the journal after it: `annals
/// check` verifies the rest, and counts the events.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals info people.annals
  annals info --header people.annals
  annals info --json people.annals | jq .end.txid")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// Read only the first 16 KiB: the header, the slots and the live block
    #[arg(long)]
    header: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let found = look(arguments)?;
    let mut output = Output::new();
    if arguments.json {
        output.line(&info_json::object(&arguments.file, &found).to_string())?;
    } else {
        print(&arguments.file, &found, &mut output)?;
    }
    output.flush()?;
    Ok(Outcome::Done)
}

fn look(arguments: &Arguments) -> Result<Found> {
    let path = &arguments.file;
    crate::remote::refuse_partial(path)?;
    if arguments.header {
        return Ok(Found { head: annals_tools::inspect_head(path)?, rest: None });
    }
    match annals_tools::overview(&progress::options(), path) {
        Ok(rest) => Ok(Found { head: annals_tools::inspect_head(path)?, rest: Some(Ok(rest)) }),
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            // Without anything to show the damage is all there is to say.
            let Ok(head) = annals_tools::inspect_head(path) else { return Err(error) };
            Ok(Found { head, rest: Some(Err(error.to_string())) })
        }
        Err(error) => Err(error),
    }
}

fn print(path: &Path, found: &Found, output: &mut Output) -> Result<()> {
    output.line(&format!("file: {}", plain(&path.display().to_string())))?;
    output.line(&format!("size: {} bytes", found.head.len))?;
    print_head(&found.head, output)?;
    match &found.rest {
        None => Ok(()),
        Some(Err(damage)) => output.line(&format!("damage: {}", plain(damage))),
        Some(Ok(examination)) => {
            print_end(&examination.inspection, output)?;
            info_image::print(examination.inspection.image.as_ref(), output)?;
            info_image::print_history(examination.inspection.history.as_ref(), output)?;
            print_history(examination, output)?;
            print_segments(examination, output)?;
            print_erasures(examination, output)?;
            print_state(&examination.snapshot, output)
        }
    }
}

/// Prints the segments of a journal that was split.
fn print_segments(examination: &Examination, output: &mut Output) -> Result<()> {
    if examination.segments.len() < 2 {
        return Ok(());
    }
    for segment in &examination.segments {
        let facts = &segment.facts;
        let begun = annals::Timestamp(facts.begun);
        let transactions = match facts.last_txid.0.checked_sub(facts.first_txid.0) {
            None => "no transaction".to_owned(),
            Some(_) => format!("transactions {} to {}", facts.first_txid, facts.last_txid),
        };
        let state = if facts.begins_with_state { ", begins with the state" } else { "" };
        let pinned = segment.pinned_by.map(|pid| format!(", read by process {pid}"));
        output.line(&format!(
            "segment {}: {} bytes, {transactions}, begun {begun}{state}{}",
            facts.number,
            facts.bytes,
            pinned.unwrap_or_default()
        ))?;
    }
    Ok(())
}

/// Prints the marks of erasures.
fn print_erasures(examination: &Examination, output: &mut Output) -> Result<()> {
    for erasure in &examination.erasures {
        output.line(&plain(&format!(
            "erasure: {}; transactions {} to {} were rewritten",
            shown_erasure(erasure, examination.snapshot.schema()),
            erasure.first_txid,
            erasure.txid - 1
        )))?;
    }
    Ok(())
}

/// Prints the values that an erasure removed, by their present names, and the position of its mark.
pub(crate) fn shown_erasure(erasure: &Erasure, schema: &Schema) -> String {
    let table = schema.table(erasure.table);
    let name = table.map_or_else(|| format!("number {}", erasure.table.0), |t| t.name.clone());
    let field = erasure.field.map(|number| {
        let field = table.and_then(|table| table.field(number));
        field.map_or_else(
            || format!(", field number {}", number.0),
            |field| format!(", field {}", field.name),
        )
    });
    let field = field.unwrap_or_default();
    format!("table {name}, row {}{field}, in transaction {}", erasure.row.0, erasure.txid)
}

/// Prints each copy of the structures in the head.
fn print_head(copies: &Copies, output: &mut Output) -> Result<()> {
    if let Some(header) = copies.headers.iter().flatten().next() {
        output.line(&format!("format version: {}", header.version))?;
        output.line(&format!(
            "features: compatible {:#x}, read-only compatible {:#x}, incompatible {:#x}",
            header.compatible, header.read_only_compatible, header.incompatible
        ))?;
        let created = annals::Timestamp(header.created);
        output.line(&format!(
            "journal: {}, segment {}, first txid {}, created {created}",
            hex(&header.journal_id),
            header.segment,
            header.first_txid
        ))?;
    }
    let whole = copies.headers.iter().flatten().count();
    output.line(&format!("copies of the header: {whole} of 3 verify"))?;
    for (number, [first, second]) in copies.slots.iter().enumerate() {
        match (first, second) {
            (Some(slot), Some(other)) if slot == other => {
                output.line(&format!("slot {number}: {}", shown_slot(slot)))?;
            }
            _ => {
                for (copy, slot) in [(0, first), (1, second)] {
                    let slot = slot.as_ref().map_or_else(no_copy, shown_slot);
                    output.line(&format!("slot {number}, copy {copy}: {slot}"))?;
                }
            }
        }
    }
    let live = copies.live.iter().flatten().next();
    output.line(&format!("live block: {}", live.map_or_else(no_copy, shown_live)))
}

fn no_copy() -> String {
    "doesn't verify".to_owned()
}

fn shown_slot(slot: &Slot) -> String {
    // The secret isn't printed.
    let Slot { point, zeroed_to, sequence, secret: _ } = slot;
    format!(
        "txid {}, position {}, chain {:016x}, zeros up to position {zeroed_to}, sequence {sequence}",
        point.txid, point.position, point.chain
    )
}

fn shown_live(live: &Live) -> String {
    let Live { soft, hard, suspect, .. } = live;
    let suspect = if *suspect { ", suspect: a flush failed" } else { "" };
    format!(
        "soft checkpoint at txid {}, position {}, chain {:016x}; hard checkpoint at position \
         {hard}{suspect}",
        soft.txid, soft.position, soft.chain
    )
}

/// Prints the end of the journal, and the bytes after that.
fn print_end(inspection: &Inspection, output: &mut Output) -> Result<()> {
    let Survey { end, hard, .. } = &**inspection;
    output.line(&format!(
        "end: txid {}, position {}, chain {:016x}",
        end.txid, end.position, end.chain
    ))?;
    output.line(&format!("known to be durable up to: position {hard}"))?;
    for line in tail(inspection) {
        output.line(&format!("behind the end: {line}"))?;
    }
    output.line(&format!("closed: {}", closed(inspection)))?;
    match inspection.damage.clone().or_else(|| damaged_copy(inspection)) {
        Some(damage) => output.line(&format!("damage: {}", plain(&damage))),
        None => Ok(()),
    }
}

/// Prints the bytes after the end, a line for each kind.
pub(crate) fn tail(survey: &Survey) -> Vec<String> {
    let mut lines = Vec::new();
    let Survey { end, len, verified_to, uncommitted_frames, left_out_count, .. } = survey;
    if let Some(last) = survey.left_out {
        let transactions = count(*left_out_count, "transaction");
        let (first, last, time) = (end.txid + 1, last.txid, last.time);
        let range = if first == last {
            format!("{last}, of")
        } else {
            format!("{first} to {last}, the last of")
        };
        lines.push(format!("{transactions} to be cut, though the frames verify ({range} {time})"));
    }
    if *uncommitted_frames > 0 {
        let frames = count(*uncommitted_frames, "data frame");
        lines.push(format!("{frames} of a transaction that did not commit"));
    }
    if let Some(tail) = survey.tail {
        let at = (*verified_to).max(tail.first - tail.first % 8);
        let frames = match tail.frames {
            0 => "no frame behind that verifies by itself".to_owned(),
            1 => "1 frame behind that verifies by itself".to_owned(),
            frames => format!("{frames} frames behind that verify by themselves"),
        };
        let bytes = count(len.saturating_sub(at), "byte");
        lines.push(format!("{bytes} from position {at} on that don't verify; {frames}"));
    }
    if lines.is_empty() {
        let ahead = len.saturating_sub(end.position);
        lines.push(if ahead > 0 { format!("{ahead} zeros") } else { "nothing".to_owned() });
    }
    lines
}

/// Describes the slots with copies that differ or don't verify.
pub(crate) fn torn_slots(survey: &Survey) -> Vec<String> {
    let torn = |(number, [first, second]): (usize, &[Option<Slot>; 2])| match (first, second) {
        (Some(first), Some(second)) if first == second => None,
        (Some(_), Some(_)) => Some(format!("the copies of slot {number} differ")),
        (None, None) => Some(format!("no copy of slot {number} verifies")),
        _ => Some(format!("one copy of slot {number} doesn't verify")),
    };
    survey.head.slots.iter().enumerate().filter_map(torn).collect()
}

/// Describes whether it was closed properly, and which process has it open.
pub(crate) fn closed(survey: &Survey) -> String {
    match (opener(survey), survey.is_closed()) {
        (Some(opener), _) => format!("no, opened by {opener}"),
        (None, true) => "yes".to_owned(),
        (None, false) => "no".to_owned(),
    }
}

/// Names the process that has the file open, or had when it ended.
pub(crate) fn opener(survey: &Survey) -> Option<String> {
    // A process that lives may be another of the same number.
    let lives = if survey.holder_lives() { "lives" } else { "is gone" };
    survey.holder().map(|pid| format!("process {pid}, which {lives}"))
}

/// Returns how many transactions all segments have that are left.
pub(crate) fn transactions(examination: &Examination) -> u64 {
    let Survey { head, end, .. } = &*examination.inspection;
    let before = examination.segments.first().map(|oldest| oldest.start.txid);
    end.txid
        .0
        .saturating_sub(before.map_or(head.header.first_txid.saturating_sub(1), |txid| txid.0))
}

fn print_history(examination: &Examination, output: &mut Output) -> Result<()> {
    let last = &examination.inspection.last;
    output.line(&format!("transactions: {}", transactions(examination)))?;
    if let Some(events) = examination.events {
        output.line(&format!("events: {events}"))?;
    }
    if let (Some(first), Some(_)) = (examination.first, last) {
        output.line(&format!("first commit: {}", first.time))?;
    }
    if let Some(last) = last {
        output.line(&format!("last commit: {} at level {}", last.time, last.level.name()))?;
    }
    if let Some(unapplied) = &examination.unapplied {
        output.line(&format!("unapplied: {}", plain(&unapplied.to_string())))?;
        output.line(&format!("state: as of transaction {}", examination.snapshot.txid()))?;
    }
    match &examination.problem {
        Some(problem) => output.line(&format!("damage: {}", plain(problem))),
        None => Ok(()),
    }
}

fn print_state(view: &View, output: &mut Output) -> Result<()> {
    for table in view.schema().tables() {
        let rows = view.table(table.number)?;
        output.line(&format!(
            "table {}: {}, {}, next id {}",
            table.name,
            count(table.fields.len(), "field"),
            count(rows.len(), "row"),
            rows.next_id(),
        ))?;
    }
    for index in view.schema().indexes() {
        let Some(table) = view.schema().table(index.table) else { continue };
        let fields: Vec<&str> = index
            .fields
            .iter()
            .filter_map(|&number| table.field(number))
            .map(|field| field.name.as_str())
            .collect();
        let unique = if index.unique { "unique index" } else { "index" };
        output.line(&format!("{unique} {}: {} {}", index.name, table.name, fields.join(",")))?;
    }
    Ok(())
}
