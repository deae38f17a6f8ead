//! Looking at all of an image: its header, both roots, every object's checksum, and whose space it is.
//!
//! Invariants, which this executes
//! 1. The header verifies, and a root can be relied on.
//! 2. All objects of a whole root verify, are inside its used space, and share no unit; common objects of both roots
//!    are the same.
//! 3. So does all that a key frame of the root in use reaches.
//! 4. A root's used space ends at the end of its last object. The objects of its own backfill aren't more than the
//!    root's count of written objects and bytes. (They may be fewer, after a read error during a backfill.)

use std::io;
use std::sync::Arc;

use super::create::open_file;
use super::figures::Figures;
use super::file::Image;
use super::format::{Identity, OBJECTS_AT, Root, UNIT};
use super::open::read_header;
use super::pin::RootPin;
use super::roots::{Roots, Slot};
use super::units::{Extent, Units};
use super::walk::{WalkStep, walk};
use crate::{Error, ErrorKind, Result};
use annals_storage::{Access, Clock, Directory};

/// The findings in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The journal that it claims to belong to.
    pub(crate) identity: Option<Identity>,
    /// The contents of the two root slots.
    pub slots: Option<[Slot; 2]>,
    /// The root that opening takes.
    pub root: Option<Root>,
    /// How many objects were verified, nodes and catalogs included.
    pub objects: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many key frames the root that opening takes has.
    pub(crate) frames: u64,
    /// How many bytes are used by either root, by key frames and by the head, in whole units.
    pub used: u64,
    /// How many bytes are free before the end of the file.
    pub free: u64,
    /// The file's length in bytes.
    pub len: u64,
    /// The first thing that is wrong, with its place.
    pub problem: Option<String>,
}

/// Checks an image; reads all of it, with the roots pinned.
///
/// # Errors
/// `NotFound` if there is none; `Io`. Its problems are in the report.
pub fn check(directory: &Arc<dyn Directory>, name: &str, clock: &dyn Clock) -> Result<Report> {
    let shown = directory.display(name);
    let storage = open_file(&**directory, name, Access::Read)?
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{shown}: there is no image")))?;
    let mut report = Report::default();
    let found = read_header(&*storage, &shown).and_then(|header| {
        report.identity = Some(header.identity);
        let image = Image::new(directory, storage, name, Access::Read, header.hash());
        let (roots, _pins) = pin_roots(&image, clock)?;
        look(&image, &roots, clock, &mut report)
    });
    match found {
        Ok(()) => Ok(report),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(error) => Ok(Report { problem: Some(error.to_string()), ..report }),
    }
}

/// Returns the present contents of the two root slots of an image, if it can be read.
#[inline]
pub fn slots(directory: &dyn Directory, name: &str) -> Option<[Slot; 2]> {
    let storage = directory.open(name, Access::Read).ok()?;
    let header = read_header(&*storage, name).ok()?;
    Roots::read(&*storage, header.hash()).ok().map(|roots| roots.slots)
}

/// The number of tries to pin roots that another process replaces meanwhile.
const TRIES: usize = 100;

/// Reads the slots, and pins their roots: their space stays until the pins are dropped, if the slots are unchanged
/// afterwards. Nothing is pinned where the system can't, and once too many tries were in vain.
pub(super) fn pin_roots(image: &Image, clock: &dyn Clock) -> Result<(Roots, Vec<RootPin>)> {
    let mut roots = image.roots()?;
    for _ in 0..TRIES {
        let told = roots.slots.iter().filter_map(Slot::root);
        let pins = told.map(|root| image.pin(root.number, clock)).collect::<io::Result<_>>();
        let pins = match pins {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
            pins => pins.map_err(|error| image.io("can't pin its roots", error))?,
        };
        let now = image.roots()?;
        if now.slots == roots.slots {
            return Ok((roots, pins));
        }
        roots = now;
    }
    Ok((roots, Vec::new()))
}

fn look(image: &Image, roots: &Roots, clock: &dyn Clock, report: &mut Report) -> Result<()> {
    report.len = image.len()?;
    report.slots = Some(roots.slots);
    let chosen = roots.choose(image.len()?, &mut |chosen| match chosen.is_whole {
        true => Ok(()),
        false => super::open::verify_written(image, &chosen.root),
    })?;
    report.root = Some(chosen.root);
    let told = roots.slots.iter().filter_map(|slot| match slot {
        Slot::Whole(root) => Some(root),
        _ => None,
    });
    if let Some(cut) =
        told.max_by_key(|root| root.number).filter(|it| it.number > chosen.root.number)
    {
        let end = format!("it reaches {}, and the file has {} bytes", cut.end, report.len);
        return Err(wrong(image, cut, end));
    }
    let mut used = Units::default();
    used.take(Extent { start: 0, count: OBJECTS_AT / UNIT });
    let newest = look_at(image, &chosen.root, &Units::default(), report)?;
    for run in newest.runs() {
        used.take(run);
    }
    if let Some(other) = roots.other(&chosen) {
        let old = look_at(image, &other, &newest, report)?;
        for run in old.runs() {
            used.take(run);
        }
    }
    look_at_frames(image, roots, &chosen.root, &mut used, clock, report)?;
    report.used = used.used() * UNIT;
    report.free = report.len.saturating_sub(report.used);
    Ok(())
}

/// Verifies the objects of key frames, with those pinned; nothing if another process has published a root since.
fn look_at_frames(
    image: &Image,
    roots: &Roots,
    newest: &Root,
    used: &mut Units,
    clock: &dyn Clock,
    report: &mut Report,
) -> Result<()> {
    let frames = image.frames_of(newest);
    if newest.frames.is_some() && frames.is_empty() {
        return Err(wrong(image, newest, "its list of key frames makes no sense".to_owned()));
    }
    let pins: io::Result<Vec<_>> =
        frames.iter().map(|frame| image.pin(frame.number, clock)).collect();
    if image.roots()?.slots != roots.slots {
        return Ok(());
    }
    for frame in frames.iter().rev() {
        let older = look_at(image, frame, used, report)?;
        older.runs().for_each(|run| _ = used.take(run));
    }
    report.frames = frames.len() as u64;
    drop(pins);
    Ok(())
}

/// Verifies the objects of a root, except those verified before; returns their units.
fn look_at(image: &Image, root: &Root, before: &Units, report: &mut Report) -> Result<Units> {
    let mut figures = Figures::NONE;
    let (mut objects, mut bytes) = (0, 0);
    let units = walk(image, root, |_, stored| {
        let extent = Extent::of(stored);
        figures.add(root, stored);
        if before.are_used(extent) {
            return Ok(WalkStep::Skip);
        }
        if !before.are_free(extent) {
            return Err(wrong(
                image,
                root,
                format!("the object at {} is written over", stored.place),
            ));
        }
        image.verify(stored)?;
        objects += 1;
        bytes += u64::from(stored.len);
        Ok(WalkStep::Enter)
    });
    report.objects += objects;
    report.bytes += bytes;
    let units = units?;
    // Objects below a part that both roots share aren't visited again.
    let Figures { end, bytes, objects, .. } = figures;
    if before.used() == 0 && end != root.end {
        let end = format!("its objects end at {end}, and it says {}", root.end);
        return Err(wrong(image, root, end));
    }
    for (what, written, told) in [("bytes", bytes, root.bytes), ("objects", objects, root.objects)]
    {
        if written > told {
            let told = format!("its backfill wrote {written} {what}, and it says {told}");
            return Err(wrong(image, root, told));
        }
    }
    Ok(units)
}

fn wrong(image: &Image, root: &Root, what: String) -> Error {
    Error::corrupt(format!("{}: damaged: root {}: {what}", image.path(), root.number))
}

#[cfg(feature = "testing")]
impl Image {
    /// Compares the figures that a root and its key frames say of themselves with what they reach; returns the first
    /// difference, for tests. After damage there may be one: what can't be read can't be released.
    ///
    /// # Errors
    /// Those of reading the nodes.
    pub fn wrong_figures(&self, root: &Root) -> Result<Option<String>> {
        for root in self.frames_of(root).iter().chain([root]) {
            let (told, found) = (Figures::told_by(root), Figures::of(self, root)?);
            if told != found && self.is_nothing_bad() {
                let number = root.number;
                return Ok(Some(format!(
                    "root {number} says {told:?} of itself, and reaches {found:?}"
                )));
            }
        }
        Ok(None)
    }
}
