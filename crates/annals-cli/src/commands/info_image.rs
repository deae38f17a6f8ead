//! The part of `annals info` about the image beside a journal, and the history index in it.

use annals::Result;
use annals::reports::OldestReader;
use annals_tools::{HistoryInspection, ImageInspection};
use serde_json::{Value, json};

use crate::output::{Output, count, plain};

/// Prints the facts of an image, if there is one.
pub(super) fn print(image: Option<&ImageInspection>, output: &mut Output) -> Result<()> {
    let Some(image) = image else { return Ok(()) };
    let ImageInspection { path, len, newest, key_frames, readers } = image;
    output.line(&format!("image: {}, {len} bytes", plain(path)))?;
    match newest {
        Ok(root) => output.line(&format!(
            "image's newest root: number {}, txid {}, position {}{}, of {}; {} bytes of the journal behind it",
            root.number, root.txid, root.position, of_segment(root.segment), root.time, root.tail
        ))?,
        Err(problem) => output.line(&format!("image can't be used: {}", plain(problem)))?,
    }
    if let (Some(first), Some(last)) = (key_frames.first(), key_frames.last()) {
        let count = key_frames.len();
        output.line(&format!("image's key frames: {count}, of txid {first} to {last}"))?;
    }
    for reader in readers {
        output.line(&format!("image's older root {}", shown_reader(reader)))?;
    }
    Ok(())
}

/// Prints the facts of a history index, if there is one.
pub(super) fn print_history(
    history: Option<&HistoryInspection>,
    output: &mut Output,
) -> Result<()> {
    let Some(HistoryInspection { txid, entries, nodes }) = history else { return Ok(()) };
    match txid {
        Ok(txid) => output.line(&format!(
            "history index: transactions up to {txid}, {} in {}",
            count(*entries, "entry"),
            count(*nodes, "node"),
        )),
        Err(problem) => output.line(&format!("history index can't be used: {}", plain(problem))),
    }
}

/// Returns the facts of a history index as an object.
pub(super) fn history_object(history: &HistoryInspection) -> Value {
    let HistoryInspection { txid, entries, nodes } = history;
    json!({
        "txid": txid.as_ref().ok().map(|txid| txid.0),
        "problem": txid.as_ref().err(),
        "entries": entries,
        "nodes": nodes,
    })
}

/// Names the segment of a position, unless it is the first.
fn of_segment(segment: u64) -> String {
    if segment == 0 { String::new() } else { format!(" of segment {segment}") }
}

fn shown_reader(reader: &OldestReader) -> String {
    let by = reader.pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
    let age = reader.age.map(|age| format!(", replaced at least {} s ago", age.as_secs()));
    format!("{}: read by {by}{}", reader.root, age.unwrap_or_default())
}

/// Returns the facts of an image as an object.
pub(super) fn object(image: &ImageInspection) -> Value {
    let ImageInspection { path, len, newest, key_frames, readers } = image;
    let readers: Vec<_> = (readers.iter())
        .map(|reader| {
            json!({
                "root": reader.root,
                "process": reader.pid,
                "seconds": reader.age.map(|age| age.as_secs()),
            })
        })
        .collect();
    let root = newest.as_ref().ok().map(|root| {
        json!({
            "number": root.number,
            "txid": root.txid.0,
            "segment": root.segment,
            "position": root.position,
            "time": root.time.to_string(),
            "written": root.written,
            "tail": root.tail,
        })
    });
    json!({
        "path": path,
        "size": len,
        "root": root,
        "problem": newest.as_ref().err(),
        "key_frames": key_frames.iter().map(|txid| txid.0).collect::<Vec<_>>(),
        "older_readers": readers,
    })
}
