//! What must be true of the file before and after an opening.

use annals::event::Event;
use annals::storage::Directory;
use annals::{Committed, Database, Schema, Sink};
use annals_simulated::SimulatedDisk;
use annals_tools::{Inspection, inspect_in, scan_in};

use super::history::{Checked, History};
use super::world::NAME;

/// A file as the crash left it.
pub(super) struct Before {
    /// None if there is no file (yet).
    found: Option<(Vec<u8>, Inspection)>,
}

impl Before {
    /// Returns where what follows the last commit begins and ends, if anything does.
    pub(super) fn tail(&self) -> Option<(usize, usize)> {
        let (content, inspection) = self.found.as_ref()?;
        if inspection.sealed.is_some() {
            return None; // what follows the last commit is the seal
        }
        let end = usize::try_from(inspection.end.position).unwrap();
        let last = last_nonzero(content).map_or(0, |at| at + 1);
        (last > end).then_some((end, last))
    }
}

/// Looks at the file that a crash left.
pub(super) fn before(disk: &SimulatedDisk, history: &History) -> Checked<Before> {
    let Some(content) = disk.content(NAME) else {
        let is_missing = history.opened;
        return if is_missing {
            Err("the file is gone".to_owned())
        } else {
            Ok(Before { found: None })
        };
    };
    let inspection = inspect_in(&annals::Options::new(), disk, NAME)
        .map_err(|error| format!("inspecting: {error:?}"))?;
    let slots = inspection.head.slots.iter().flatten().flatten().map(|slot| slot.point.txid);
    match slots.max() {
        None => return Err("neither slot is whole".to_owned()),
        Some(newest) if newest < annals::Txid(history.hard) => {
            return Err(format!(
                "no slot of segment {} reaches transaction {}, as one did before: {:?}",
                inspection.head.header.segment, history.hard, inspection.head.slots
            ));
        }
        Some(_) => {}
    }
    Ok(Before { found: Some((content, inspection)) })
}

/// Judges the file and the report after an opening with `Recovery::Checked`.
pub(super) fn opened(disk: &SimulatedDisk, before: &Before, database: &Database) -> Checked {
    only_zeros_follow(disk, database)?;
    whole_history(disk, database)?;
    let Some((content, inspection)) = &before.found else { return Ok(()) };
    let cut = database.recovered().cut.as_ref();
    let Some((end, last)) = before.tail() else {
        return match cut {
            None => Ok(()),
            Some(cut) => Err(format!("nothing was there to be cut, but it reports {cut:?}")),
        };
    };
    let Some(cut) = cut else { return Err(format!("{} bytes cut in silence", last - end)) };
    let may_hold_a_commit = inspection.tail.is_some() || inspection.left_out_count > 0;
    let is_right = cut.position == end as u64
        && cut.txid == inspection.end.txid
        && cut.bytes == (last - end) as u64
        && cut.uncommitted_frames == inspection.uncommitted_frames
        && cut.may_have_been_acknowledged == may_hold_a_commit
        && !database.recovered().findings.is_empty();
    if !is_right {
        return Err(format!("cut {end}..{last}, but it reports {cut:?}"));
    }
    let saved = cut.saved_as.as_ref().map(|name| name.strip_prefix("simulated:").unwrap());
    let saved = saved.map(|name| disk.content(name).unwrap_or_default());
    if saved.as_deref() != may_hold_a_commit.then_some(&content[end..last]) {
        return Err(format!("the tail {end}..{last} isn't saved as it was: {cut:?}"));
    }
    Ok(())
}

/// Checks that a history in several segments is told without a gap, from the first transaction on if all
/// segments are there.
fn whole_history(disk: &SimulatedDisk, database: &Database) -> Checked {
    let names = disk.list().unwrap_or_default();
    let newest = inspect_in(&annals::Options::new(), disk, NAME)
        .map_err(|error| format!("inspecting: {error:?}"))?
        .head
        .header
        .segment;
    if newest == 0 {
        return Ok(());
    }
    let is_there = |number| names.contains(&format!("{NAME}-segment-{number:06}"));
    let are_all = (0..newest).all(is_there);
    let mut told = Told(Vec::new());
    scan_in(&annals::Options::new(), disk, NAME, &mut told)
        .map_err(|error| format!("scanning: {error:?}"))?;
    let (from, to) = (told.0.first().copied().unwrap_or(1), database.read().txid().0);
    let is_whole = told.0.iter().copied().eq(from..=to);
    match is_whole && (from == 1 || !are_all) {
        true => Ok(()),
        false => Err(format!("the history up to transaction {to} tells {:?} of {names:?}", told.0)),
    }
}

/// The transactions that a history tells.
struct Told(Vec<u64>);

impl Sink for Told {
    fn event(&mut self, _: &Schema, _: &Event<'_>) -> annals::Result<()> {
        Ok(())
    }
    fn commit(&mut self, _: &Schema, committed: &Committed) -> annals::Result<()> {
        self.0.push(committed.txid.0);
        Ok(())
    }
}

/// Checks that only zeros follow the last commit.
pub(super) fn only_zeros_follow(disk: &SimulatedDisk, database: &Database) -> Checked {
    let end = usize::try_from(database.read().point().position).unwrap();
    let content = disk.content(NAME).unwrap_or_default();
    match first_nonzero(content.get(end..).unwrap_or_default()) {
        None => Ok(()),
        Some(at) => Err(format!("byte {} behind the end at {end} is not zero", end + at)),
    }
}

/// Checks that a file was closed properly before it was opened again.
pub(super) fn closed(disk: &SimulatedDisk) -> Checked {
    let inspection = inspect_in(&annals::Options::new(), disk, NAME)
        .map_err(|error| format!("inspecting: {error:?}"))?;
    if inspection.is_closed() {
        Ok(())
    } else {
        Err(format!("not closed properly: {inspection:?}"))
    }
}

/// How many bytes are compared at once: one by one would be most of the time that a test takes.
const STEP: usize = 4096;

fn is_zero(bytes: &[u8]) -> bool {
    bytes == &[0; STEP][..bytes.len()]
}

fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    let (number, chunk) = bytes.chunks(STEP).enumerate().find(|(_, chunk)| !is_zero(chunk))?;
    Some(number * STEP + chunk.iter().position(|byte| *byte != 0)?)
}

fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    let (number, chunk) = bytes.chunks(STEP).enumerate().rfind(|(_, chunk)| !is_zero(chunk))?;
    Some(number * STEP + chunk.iter().rposition(|byte| *byte != 0)?)
}
