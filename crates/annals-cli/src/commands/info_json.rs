//! The output of `annals info --json`.

use std::path::Path;
use std::sync::Arc;

use annals::journal::format::{Header, Live, Slot};
use annals::journal::{Copies, Erasure, Survey};
use annals::{Committed, Point, Timestamp, Unapplied, View};
use annals_tools::{Examination, SegmentInspection};
use serde_json::{Value, json};

use super::info_image;
use crate::output::hex;

/// The findings in a file.
pub(crate) struct Found {
    pub(crate) head: Copies,
    /// All the rest, or the damage that keeps from reading the file; `None` if the rest wasn't requested.
    pub(crate) rest: Option<Result<Examination, String>>,
}

/// Returns all that was found as one object. A chain is a string of 16 hexadecimal digits, since not all
/// readers of JSON have whole numbers of 64 bits.
pub(crate) fn object(path: &Path, found: &Found) -> Value {
    let copies = &found.head;
    let mut object = json!({
        "file": path.display().to_string(),
        "size": copies.len,
        "header": copies.headers.iter().flatten().next().map(header),
        "header_copies": copies.headers.map(|copy| copy.is_some()),
        "slots": copies.slots.map(|copies| copies.map(|copy| copy.map(slot))),
        "live": copies.live.iter().flatten().next().map(live),
    });
    let more = match &found.rest {
        None => return object,
        Some(Err(damage)) => json!({ "damage": damage }),
        Some(Ok(examination)) => rest(examination),
    };
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

fn header(header: &Header) -> Value {
    json!({
        "version": header.version,
        "journal": hex(&header.journal_id),
        "segment": header.segment,
        "first_txid": header.first_txid,
        "created": Timestamp(header.created).to_string(),
        "compatible": header.compatible,
        "read_only_compatible": header.read_only_compatible,
        "incompatible": header.incompatible,
    })
}

fn point(point: Point) -> Value {
    json!({
        "txid": point.txid.0,
        "position": point.position,
        "chain": format!("{:016x}", point.chain),
    })
}

fn slot(slot: Slot) -> Value {
    let mut object = point(slot.point);
    if let Value::Object(object) = &mut object {
        object.insert("zeroed_to".to_owned(), slot.zeroed_to.into());
        object.insert("sequence".to_owned(), slot.sequence.into());
    }
    object
}

fn live(live: &Live) -> Value {
    json!({
        "process": live.pid,
        "soft": point(live.soft),
        "hard": live.hard,
        "suspect": live.suspect,
    })
}

fn commit(committed: &Committed) -> Value {
    json!({
        "txid": committed.txid.0,
        "position": committed.position,
        "time": committed.time.to_string(),
        "level": committed.level.name(),
    })
}

fn unapplied(unapplied: &Unapplied) -> Value {
    json!({
        "txid": unapplied.txid.0,
        "event": unapplied.event,
        "what": unapplied.what,
        "position": unapplied.position,
        "reason": unapplied.reason,
        "hard": unapplied.is_hard,
    })
}

fn rest(examination: &Examination) -> Value {
    let inspection = &examination.inspection;
    let damage = inspection.damage.clone().or_else(|| examination.problem.clone());
    let damage = damage.or_else(|| damaged_copy(inspection));
    json!({
        "end": point(inspection.end),
        "hard": inspection.hard,
        "verified_to": inspection.verified_to,
        "image": inspection.image.as_ref().map(info_image::object),
        "history_index": inspection.history.as_ref().map(info_image::history_object),
        "segments": examination.segments.iter().map(segment).collect::<Vec<_>>(),
        "erasures": examination.erasures.iter().map(erasure).collect::<Vec<_>>(),
        "closed": inspection.is_closed(),
        "process": inspection.holder(),
        "process_lives": inspection.holder_lives(),
        "wrong_chain": inspection.wrong_chain(),
        "uncommitted_frames": inspection.uncommitted_frames,
        "tail": inspection.tail.map(|tail| tail.first),
        "tail_frames": inspection.tail.map_or(0, |tail| tail.frames),
        "damage": damage,
        "unapplied": examination.unapplied.as_ref().map(unapplied),
        "events": examination.events,
        "first": examination.first.as_ref().map(commit),
        "last": inspection.last.as_ref().map(commit),
        "tables": tables(&examination.snapshot),
        "indexes": indexes(&examination.snapshot),
    })
}

fn erasure(erasure: &Erasure) -> Value {
    let chains = erasure.chains.iter().map(|told| {
        let (before, after) = (format!("{:016x}", told.before), format!("{:016x}", told.after));
        json!({ "txid": told.txid.0, "before": before, "after": after })
    });
    json!({
        "txid": erasure.txid.0,
        "table": erasure.table.0,
        "row": erasure.row.0,
        "field": erasure.field.map(|field| field.0),
        "first_txid": erasure.first_txid.0,
        "chains": chains.collect::<Vec<_>>(),
    })
}

fn segment(segment: &SegmentInspection) -> Value {
    let SegmentInspection { path, facts, start, end, sealed, pinned_by } = segment;
    let transactions = facts.last_txid.0.checked_sub(facts.first_txid.0);
    json!({
        "path": path,
        "number": facts.number,
        "size": facts.bytes,
        "transactions": transactions.map(|_| [facts.first_txid.0, facts.last_txid.0]),
        "start": point(*start),
        "end": point(*end),
        "begins_with_state": facts.begins_with_state,
        "begun": Timestamp(facts.begun).to_string(),
        "sealed": sealed.map(|time| time.to_string()),
        "read_by": pinned_by,
    })
}

fn tables(view: &View) -> Vec<Value> {
    let table = |table: &Arc<annals::Table>| {
        let rows = view.table(table.number).ok()?;
        Some(json!({ "name": table.name, "rows": rows.len(), "next_id": rows.next_id() }))
    };
    view.schema().tables().iter().filter_map(table).collect()
}

fn indexes(view: &View) -> Vec<Value> {
    let index = |index: &Arc<annals::Index>| {
        let table = view.schema().table(index.table)?;
        let column = |(number, word)| Some(format!("{}{word}", table.field(number)?.name));
        let fields: Vec<_> = index.columns().filter_map(column).collect();
        Some(json!({
            "name": index.name,
            "table": table.name,
            "fields": fields,
            "unique": index.unique,
        }))
    };
    view.schema().indexes().iter().filter_map(index).collect()
}

/// Prints damage in one place while another has the same data, so that nothing is lost yet.
pub(crate) fn damaged_copy(survey: &Survey) -> Option<String> {
    let repair = "everything else is sound, and opening the file for writing repairs it";
    match (survey.damaged_headers(), survey.wrong_chain()) {
        (0, None) => None,
        (0, Some(position)) => Some(format!(
            "the chain that the frame before position {position} stores is wrong, but a slot or the next \
             frame has the right one; {repair}"
        )),
        (1, _) => Some(format!("1 of the 3 copies of the header is damaged; {repair}")),
        (damaged, _) => {
            Some(format!("{damaged} of the 3 copies of the header are damaged; {repair}"))
        }
    }
}
