//! The parts of a journal to read for a lookup, from the history index as far as the journal proves it.
//!
//! An index is used up to its last zone before the end of the files, if the journal after that zone follows it. The
//! chain there covers everything before, so that the history is the indexed one.

use std::collections::BTreeSet;

use annals_schema::{RowId, TableNumber};

use crate::db::history::files::Files;
use crate::db::replay::segments::Since;
use crate::event::{self, Event};
use crate::history::{
    COMMENTED, COMMENTS, ENDS_INSIDE, IndexFile, Lookup, STATE, Zone, comment_key, history_name,
    table_key,
};
use crate::journal::Committed;
use crate::storage::Access;
use crate::{ErrorKind, Result};

/// The number of tries to read the index while another process adds to it.
const TRIES: usize = 5;

/// The parts to read for a row.
#[derive(Debug)]
pub(in crate::db) struct Parts {
    /// In their order.
    pub(in crate::db) zones: Vec<Zone>,
    /// The position from which everything must be read, and the number of commands of the schema before it.
    pub(in crate::db) tail: Since,
    pub(in crate::db) commands: u64,
    /// Why the index can't be used.
    pub(in crate::db) problem: Option<String>,
    /// How many bytes were read to know that.
    pub(in crate::db) bytes: u64,
}

/// An index, as far as it covers the history that is read.
pub(in crate::db) struct Indexed<'i> {
    pub(in crate::db) lookup: Lookup<'i>,
    /// The last of its zones before the end of the files.
    last: u64,
    /// The first segment of the kept history.
    first_segment: u64,
    /// The position from which everything must be read, and the number of commands of the schema before it.
    pub(in crate::db) tail: Since,
    pub(in crate::db) commands: u64,
    bytes: u64,
}

/// Returns the parts to read for a row.
///
/// # Errors
/// `Io`.
pub(in crate::db) fn parts_of(files: &Files, table: TableNumber, id: RowId) -> Result<Parts> {
    let (found, problem) = with_index(files, |indexed| {
        let zones = indexed.zones_of(table_key(table), id.0)?;
        let (tail, commands) = (indexed.tail, indexed.commands);
        let bytes = indexed.bytes + indexed.lookup.bytes();
        Ok(Parts { zones, tail, commands, problem: None, bytes })
    })?;
    let tail = files.first();
    Ok(found.unwrap_or(Parts { zones: Vec::new(), tail, commands: 0, problem, bytes: 0 }))
}

/// Runs a lookup in the index of a journal; `None` if there is none, or it can't be used, and then the reason.
///
/// # Errors
/// Those of `look`, except that the index is damaged, or can't be read.
pub(in crate::db) fn with_index<T>(
    files: &Files,
    mut look: impl FnMut(&mut Indexed<'_>) -> Result<T>,
) -> Result<(Option<T>, Option<String>)> {
    let name = history_name(&files.file.journal);
    let open = || IndexFile::open(&*files.file.directory, &name, files.journal_id(), Access::Read);
    let (mut before, mut problem) = (None, None);
    for _ in 0..TRIES {
        let looked = open().map(|index| {
            let Some(index) = index else { return (None, None) };
            let number = Some(index.head().number);
            match Indexed::new(files, &index) {
                Ok(Some(mut indexed)) => (Some(look(&mut indexed)), number),
                Ok(None) => (None, number),
                Err(error) => (Some(Err(error)), number),
            }
        });
        let (looked, number) = match looked {
            Ok((None, _)) => return Ok((None, None)),
            Ok((Some(looked), number)) => (looked, number),
            Err(error) => (Err(error), None),
        };
        match looked {
            Ok(found) => return Ok((Some(found), None)),
            // Should it be the journal that can't be read, reading all of that says so.
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                return Err(error);
            }
            Err(error) => problem = Some(error.to_string()),
        }
        // Its room may have been used again meanwhile.
        if before == Some(number) {
            break;
        }
        before = Some(number);
    }
    Ok((None, problem))
}

impl<'i> Indexed<'i> {
    /// Checks an index; `None` if no zone of it is before the end of the files, or if it isn't complete.
    ///
    /// # Errors
    /// `Corrupt` if it isn't this history's, or damaged; `Io`.
    fn new(files: &Files, index: &'i IndexFile) -> Result<Option<Self>> {
        let mut lookup = Lookup::new(index);
        let first = files.first();
        let begins = index.head().runs.first().map(|run| run.zone);
        let begins = begins.map(|zone| lookup.zone(zone)).transpose()?.flatten();
        let is_whole = begins.is_some_and(|zone| {
            zone.segment < first.segment
                || (zone.segment == first.segment && zone.start == first.point)
        });
        let place = (files.segment(), files.end.position);
        let Some((mut last, mut zone)) = lookup.last_before(place)?.filter(|_| is_whole) else {
            return Ok(None);
        };
        while zone.is(ENDS_INSIDE) {
            let before =
                last.checked_sub(1).map(|before| lookup.zone(before)).transpose()?.flatten();
            let Some(before) = before else { return Ok(None) };
            (last, zone) = (last - 1, before);
        }
        if zone.segment < first.segment {
            return Ok(None);
        }
        let tail = Since { segment: zone.segment, point: zone.end };
        // True if the rest follows it: each frame is verified.
        files.read_all(tail, &mut |_| Ok(()))?;
        let commands = commands_behind(&mut lookup, last, index.head().bound.commands)?;
        let bytes = files.behind(tail);
        Ok(Some(Self { lookup, last, first_segment: first.segment, tail, commands, bytes }))
    }

    /// Returns the zones to read for a row: those that change it. Of a transaction in several zones also those with
    /// its comments, and its end.
    fn zones_of(&mut self, table: u64, row: u64) -> Result<Vec<Zone>> {
        let mut wanted = BTreeSet::new();
        for number in self.lookup.zones_of(table, row)? {
            let Some(zone) = self.zone(number)? else { continue };
            wanted.insert(number);
            self.add_before(number, &zone, &mut wanted)?;
            self.add_behind(number, zone, &mut wanted)?;
        }
        let zones = wanted.into_iter().map(|number| self.zone(number));
        zones.filter_map(Result::transpose).collect()
    }

    /// Adds the zones with comments of a transaction that continues in a zone.
    fn add_before(&mut self, number: u64, zone: &Zone, wanted: &mut BTreeSet<u64>) -> Result<()> {
        for number in (0..number).rev() {
            let before = self.zone(number)?.filter(|before| before.segment == zone.segment);
            let Some(before) = before.filter(|before| before.is(ENDS_INSIDE)) else { break };
            if before.is(COMMENTED) {
                wanted.insert(number);
            }
            // It has the beginning of that transaction.
            if before.end.txid > before.start.txid {
                break;
            }
        }
        Ok(())
    }

    /// Adds the zones that a transaction needs which continues after a zone.
    fn add_behind(&mut self, number: u64, zone: Zone, wanted: &mut BTreeSet<u64>) -> Result<()> {
        let mut behind = (number, zone);
        while behind.1.is(ENDS_INSIDE) {
            let Some(next) = self.zone(behind.0 + 1)? else { break };
            let is_end = next.end.txid > next.start.txid;
            if is_end || next.is(COMMENTED) {
                wanted.insert(behind.0 + 1);
            }
            if is_end {
                break;
            }
            behind = (behind.0 + 1, next);
        }
        Ok(())
    }

    /// Returns a zone, if it is part of the kept history, and before the end of the files.
    fn zone(&mut self, number: u64) -> Result<Option<Zone>> {
        if number > self.last {
            return Ok(None);
        }
        let first = self.first_segment;
        let is_left =
            |zone: &Zone| zone.segment > first && !zone.is(STATE) || zone.segment == first;
        Ok(self.lookup.zone(number)?.filter(is_left))
    }

    /// Returns the last transaction in the index whose time isn't later; the state with which the history begins is one,
    /// too.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn last_at(&mut self, files: &Files, time: i64) -> Result<Option<u64>> {
        let mut number = self.lookup.zone_of_time(time)?.map(|(number, _)| number);
        // A zone after the end of the files says nothing about earlier ones.
        while let Some(at) = number.filter(|at| *at > self.last) {
            number = at.checked_sub(1);
        }
        while let Some(at) = number {
            let left = self.lookup.zone(at)?.filter(|zone| zone.segment >= self.first_segment);
            let Some(zone) = left else { break };
            number = at.checked_sub(1);
            if zone.is(STATE) {
                continue;
            }
            let mut last = None;
            files.read_zone(&zone, &mut |seen| {
                last = Committed::of(seen.frame).filter(|commit| commit.time.0 <= time).or(last);
                Ok(())
            })?;
            if let Some(last) = last {
                return Ok(Some(last.txid));
            }
        }
        Ok(self.state(files)?.filter(|state| state.time.0 <= time).map(|state| state.txid))
    }

    /// Returns the transaction whose state the history begins with, if it does.
    fn state(&mut self, files: &Files) -> Result<Option<Committed>> {
        let Some((mut number, _)) = self.lookup.first_of_segment_at(self.first_segment)? else {
            return Ok(None);
        };
        let mut state = None;
        while let Some(zone) = self.zone(number)?.filter(|zone| zone.is(STATE) && state.is_none()) {
            files.read_zone(&zone, &mut |seen| {
                state = Committed::of(seen.frame).or(state);
                Ok(())
            })?;
            number += 1;
        }
        Ok(state)
    }

    /// Returns the last transaction in the index that has a comment. `schema_of` returns the schema of a number of
    /// commands.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(in crate::db) fn last_with(
        &mut self,
        files: &Files,
        comment: &str,
        schema_of: impl Fn(u64) -> Result<annals_schema::Schema>,
    ) -> Result<Option<u64>> {
        let mut zones = self.lookup.zones_of(COMMENTS, comment_key(comment))?;
        while let Some(number) = zones.pop() {
            let Some(zone) = self.zone(number)? else { continue };
            let (mut schema, mut last) = (schema_of(u64::from(zone.commands))?, None);
            files.read_zone(&zone, &mut |seen| {
                if !seen.frame.header.has_events() {
                    return Ok(());
                }
                let (payload, at) = (seen.frame.payload, seen.frame.payload_at());
                event::decode(payload, at, &mut schema, &mut |_, event| {
                    if *event == Event::Comment(comment) {
                        last = Some(seen.frame.header.txid);
                    }
                    Ok(())
                })
            })?;
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    }
}

/// Returns how many commands of the schema there are after a zone: as many as before the next one that doesn't only
/// repeat the state.
fn commands_behind(lookup: &mut Lookup<'_>, number: u64, at_end: u64) -> Result<u64> {
    let mut next = number + 1;
    loop {
        match lookup.zone(next)? {
            Some(zone) if zone.is(STATE) => next += 1,
            Some(zone) => return Ok(u64::from(zone.commands)),
            None => return Ok(at_end),
        }
    }
}
