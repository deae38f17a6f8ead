//! The text of `annals recover`: the plan.

use std::path::Path;

use annals::journal::Survey;
use annals::storage::{Access, FileDirectory};

use crate::commands::info;
use crate::output::plain;

/// Prints the findings, and which bytes would be kept, cut and saved.
pub(crate) fn plan(file: &Path, survey: &Survey) -> Vec<String> {
    let shown = plain(&file.display().to_string());
    let Survey { end, len, head, .. } = survey;
    let damaged = damaged_copies(survey);
    if survey.is_closed() && damaged.is_empty() {
        return vec![match survey.holder() {
            None => format!("nothing to do: {shown} was closed properly"),
            Some(pid) if survey.holder_lives() => {
                format!("nothing to do: {shown} is whole; process {pid} has it open")
            }
            Some(pid) => format!(
                "nothing to do: {shown} is whole, though process {pid} ended without closing it: nothing follows \
                 its last commit"
            ),
        }];
    }
    let kept = match survey.last {
        None => "no transaction".to_owned(),
        Some(last) => format!(
            "{}, up to position {}; the last was committed {} at level {}",
            txids(head.header.first_txid, end.txid.0),
            end.position,
            last.time,
            last.level.name()
        ),
    };
    if !survey.has_tail() && !damaged.is_empty() {
        return vec![
            format!("{shown} is whole, but {damaged}"),
            format!("keep: {kept}"),
            "cut: nothing, so no copy is made".to_owned(),
            "repair: what is damaged is written again from what is whole".to_owned(),
        ];
    }
    if !survey.has_tail() {
        return vec![
            format!("{shown} was not closed properly, but it is whole: only zeros follow the end"),
            format!("keep: {kept}"),
            "nothing to do: whatever opens it for writing goes on from there".to_owned(),
        ];
    }
    let mark = format!("{}-{:016x}", end.txid, end.chain);
    let mut lines = vec![
        match info::opener(survey) {
            Some(opener) => format!("{shown} was not closed properly by {opener}"),
            None => format!("{shown} was not closed properly"),
        },
        format!("keep: {kept}"),
        format!("cut: all behind that, up to position {len}"),
    ];
    lines.extend(info::tail(survey).into_iter().map(|line| format!("  {line}")));
    lines.push(match survey.may_hold_a_commit() {
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

/// Prints the damaged copies of structures that are written more than once; nothing if there are none.
fn damaged_copies(survey: &Survey) -> String {
    let headers = match survey.damaged_headers() {
        0 => None,
        1 => Some("1 of the 3 copies of its header is damaged".to_owned()),
        damaged => Some(format!("{damaged} of the 3 copies of its header are damaged")),
    };
    let chain = survey
        .wrong_chain()
        .map(|position| format!("the chain stored before position {position} is wrong"));
    let slots = info::torn_slots(survey);
    headers.into_iter().chain(chain).chain(slots).collect::<Vec<_>>().join(", and ")
}

/// Returns the name of a new file for the saved part of a file: beside that, after resolving links, with an unused
/// name.
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

pub(crate) fn txids(first: u64, last: u64) -> String {
    if first == last {
        format!("transaction {first}")
    } else {
        format!("transactions {first} to {last}")
    }
}
