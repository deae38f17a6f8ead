//! Checks that one journal is the beginning of another, or finds where two histories diverge.

use super::source::{Part, Source};
use super::target::Target;
use annals::{Error, ErrorKind, Result, Txid};
use annals_journal::{Committed, Erasure, Frame, Point};

/// True if a segment has this point, or continues from it. Reads frames only if no slot has the point.
pub(super) fn has(part: &Part, point: Point) -> Result<bool> {
    let slots = part.head.copies().map(|slot| slot.point);
    if part.head.start() == point || slots.clone().any(|slot| slot == point) {
        return Ok(true);
    }
    let len = part.len()?;
    let io = |error| part.unreadable(error);
    if part.reader(point, len).next().map_err(io)?.is_some() {
        return Ok(true);
    }
    // Perhaps nothing follows it: then it is the end.
    let before = slots.filter(|slot| slot.position < point.position);
    let from = before.max_by_key(|slot| slot.position).unwrap_or_else(|| part.head.start());
    let mut reader = part.reader(from, len);
    while reader.position() < point.position && reader.next().map_err(io)?.is_some() {}
    Ok(reader.point() == point)
}

/// Returns the error that a copy isn't the beginning of a journal. Reads both until they part.
pub(super) fn error(source: &Source, target: &Target, copy: &mut Source) -> Error {
    let (from, to) = (&source.place.shown, &target.place.shown);
    let common = match last_common(source, copy) {
        Ok((txid, true)) => {
            let message = format!(
                "{to}: has all that {from} has, and more: the last transaction that both have is {txid}, \
                 and {to} goes on up to {}; nothing was changed: is it the other way round?",
                target.end.txid
            );
            return Error::new(ErrorKind::Diverged, message);
        }
        Ok((0, _)) => "they have no transaction in common".to_owned(),
        Ok((txid, _)) => format!("the last transaction that both have is {txid}"),
        Err(error) => format!("where they part can't be told ({error})"),
    };
    if let Some(mark) = erasure_between(source, target) {
        return Error::new(
            ErrorKind::Diverged,
            format!(
                "{to}: isn't the beginning of {from} any more: the erasure that transaction {mark} of {from} \
                 marks took values out of transactions that {to} has; {common}; nothing was changed: {to} still \
                 has those values, so remove it, and push to a new file",
            ),
        );
    }
    Error::new(
        ErrorKind::Diverged,
        format!(
            "{to}: isn't the beginning of {from}: {common}, and {to} has transactions up to {}; nothing \
             was changed: push to another file, or move this one elsewhere",
            target.end.txid
        ),
    )
}

/// Returns the transaction that marks the first erasure which rewrote history of a copy, and which the copy hasn't
/// applied.
fn erasure_between(source: &Source, target: &Target) -> Option<u64> {
    let (known, mut is_known) = (target.header.last_erasure(), false);
    let mut first = None;
    for part in source.again().look(None).ok()? {
        let erasure = part.header().last_erasure();
        if erasure.is_none() || (erasure == known && part.successor.is_some()) {
            continue;
        }
        let mut reader = part.reader(part.head.start(), part.len().ok()?);
        while let Ok(Some(frame)) = reader.next() {
            is_known |= frame.chain == target.end.chain;
            if let Some(mark) = Erasure::of(&frame).filter(|it| it.first_txid <= target.end.txid) {
                first.get_or_insert(mark.txid.0);
            }
        }
    }
    first.filter(|_| !is_known)
}

/// Returns the error that a copy is of another journal.
pub(super) fn another(source: &Source, target: &Target) -> Error {
    Error::new(
        ErrorKind::Diverged,
        format!(
            "{}: is another database than {}, not a copy of it: they have no transaction in common; \
             nothing was changed: push to another file",
            target.place.shown, source.place.shown
        ),
    )
}

/// Returns the last transaction that two journals have in common, 0 if there is none, and whether the first
/// of them has no more.
fn last_common(source: &Source, copy: &mut Source) -> Result<(u64, bool)> {
    let ours = source.again().look(None)?;
    let theirs = copy.look(None)?;
    let mut common = 0;
    for part in &ours {
        let Some(other) = theirs.iter().find(|other| other.head.hash == part.head.hash) else {
            continue;
        };
        let (txid, is_all) = common_of(part, other)?;
        common = common.max(txid);
        if !is_all || part.successor.is_none() {
            return Ok((common, is_all));
        }
    }
    Ok((common, false))
}

/// Returns the last commit that two files of one segment share, and whether the first has no more.
fn common_of(part: &Part, other: &Part) -> Result<(u64, bool)> {
    let start = part.head.start();
    let Txid(mut common) = start.txid;
    let mut ours = part.reader(start, part.len()?);
    let mut theirs = other.reader(start, other.len()?);
    loop {
        let a = ours.next().map_err(|error| part.unreadable(error))?;
        let b = theirs.next().map_err(|error| other.unreadable(error))?;
        let chain = |frame: &Option<Frame<'_>>| frame.as_ref().map(|frame| frame.chain);
        match (chain(&a), chain(&b)) {
            (None, _) => return Ok((common, true)),
            (ours, theirs) if ours != theirs => return Ok((common, false)),
            _ => {}
        }
        if let Some(committed) = a.as_ref().and_then(Committed::of) {
            common = committed.txid.0;
        }
    }
}
