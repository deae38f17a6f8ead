//! Opening from the image: finding it, and checking that the journal has its point.
//!
//! An unusable image is renamed as damaged, or left in place by a process that doesn't have it alone. Either way the
//! journal is replayed from its beginning, and the reason is reported.

use std::io;
use std::sync::Arc;

use annals_schema::Txid;
use annals_storage::step;

use crate::db::follow::pins::Pins;
use crate::db::follow::segments::{Past, Since};
use crate::db::follow::source::read_frames;
use crate::db::follow::state::{Replay, State};
use crate::db::follow::unapplied::Before;
use crate::db::follow::witness::{ends_there, identity, image_witnesses};
use crate::db::present::segment::JournalFile;
use crate::image::{
    self, Catalog, Damage, Guarded, Identity, Image, Judging, KeyFrame, KeyFrames, Opened, Root,
    RootPin, SetAside, Source, Usable, Witness,
};
use crate::journal::format::Header;
use crate::journal::{FrameReader, Head, Point, Survey};
use crate::storage::{Access, Clock, Directory, Storage, SystemClock};
use crate::store::{BaseRoot, Pager, Store, View};
use crate::{Error, ErrorKind, Result};

/// The image of a journal as it was found, and what is known of the journal by it.
#[derive(Debug)]
pub(in crate::db) struct OpenedImage {
    /// The name of the image.
    pub(in crate::db) name: String,
    /// The head of the journal.
    pub(in crate::db) head: Head,
    /// The root with which the store begins; `None`: it is replayed from the beginning.
    pub(in crate::db) begun: Option<OpenedRoot>,
    /// The roots that views of this process read.
    pub(in crate::db) pins: Arc<Pins>,
    /// Damage of it that is found later.
    pub(in crate::db) damage: Arc<Damage>,
    /// The points of the journal that the roots of the image prove.
    pub(in crate::db) witnesses: Vec<Witness>,
    /// True if the journal seems to lack the root's point: a survey of all of it determines which of the two is
    /// wrong.
    pub(in crate::db) is_doubtful: bool,
    /// The reason that an existing image isn't used.
    pub(in crate::db) reason: Option<String>,
    /// A sentence for each thing worth telling a person.
    pub(in crate::db) notes: Vec<String>,
    /// The state before a commit that doesn't apply, where there is one.
    pub(in crate::db) stopped: Option<Before>,
}

/// A root of the image that is open: a store can begin with it.
#[derive(Debug)]
pub(in crate::db) struct OpenedRoot {
    pub(in crate::db) image: Arc<Image>,
    pub(in crate::db) pager: Arc<Pager>,
    pub(in crate::db) root: Root,
    pub(in crate::db) view: View,
    /// The frames after the root in the segments before the journal's file.
    pub(in crate::db) past: Past,
    /// The time of the last commit before, if it was from a clock.
    pub(in crate::db) last_clock_time: i64,
}

/// How often an opening starts over when the image moves on under its hands.
const TRIES: usize = 100;

/// A request for the state of a journal: what to open, and how.
#[derive(Clone)]
pub(in crate::db) struct OpenRequest<'a> {
    pub(in crate::db) directory: &'a Arc<dyn Directory>,
    /// The name of the journal.
    pub(in crate::db) name: &'a str,
    pub(in crate::db) storage: &'a Arc<dyn Storage>,
    /// For writing only if no other process may write the image meanwhile.
    pub(in crate::db) access: Access,
    pub(in crate::db) clock: Arc<dyn Clock>,
    /// How much of the image may be kept in memory, in bytes.
    pub(in crate::db) budget: u64,
    /// True if no other process writes the image meanwhile, so that changes larger than memory may be written to it.
    pub(in crate::db) spills: bool,
    /// The number of key frames to keep in updates.
    pub(in crate::db) key_frames: KeyFrames,
    /// The record of damage, which excludes the roots that reach it; `None`: damage is an error of its reader.
    pub(in crate::db) damage: Option<&'a Arc<Damage>>,
    /// All of a root is read before it is taken.
    pub(in crate::db) is_whole: bool,
    /// The last transaction whose roots are of this journal; `None`: all are.
    pub(in crate::db) roots_until: Option<Txid>,
    /// Only what is known to be on permanent storage is shown.
    pub(in crate::db) hard_only: bool,
}

impl OpenedImage {
    /// True if the found image is of the segment that was surveyed.
    pub(in crate::db) fn is_in(&self, survey: &Survey) -> bool {
        let segment = survey.head.header.segment;
        self.begun.as_ref().is_some_and(|begun| begun.root.segment == segment)
    }

    /// Returns the time of the last commit in the image, if it was from a clock.
    pub(in crate::db) fn last_clock_time(&self) -> i64 {
        self.begun.as_ref().map_or(i64::MIN, |begun| begun.last_clock_time)
    }
}

impl OpenedRoot {
    /// Begins with a pinned root, of which `budget` bytes may be kept in memory. If it is guarded, pages with known
    /// damage are lost.
    pub(in crate::db) fn new(
        usable: Usable,
        pin: Arc<RootPin>,
        past: Past,
        budget: u64,
        is_guarded: bool,
    ) -> Result<Self> {
        let Usable { image, root, catalog } = usable;
        let (image, keeps) = (Arc::new(image), root.memory() <= budget);
        let source: Arc<dyn Source> = match is_guarded {
            true => Arc::new(Guarded(Arc::clone(&image))),
            false => Arc::clone(&image) as _,
        };
        let pager = Arc::new(Pager::new(source, budget, keeps));
        let (last_clock_time, view) =
            load(&catalog, &pager).map_err(|error| error.within(image.path()))?;
        Ok(Self { image, pager, root, view: view.pinned(pin), past, last_clock_time })
    }

    /// Returns a store that continues from the root.
    pub(in crate::db) fn resume(&self) -> Replay {
        Replay::resume(Store::resume(self.view.share()), self.root.segment)
    }
}

impl<'a> OpenRequest<'a> {
    /// Makes a request for opening an image that must not be changed.
    pub(in crate::db) fn to_read(
        directory: &'a Arc<dyn Directory>,
        name: &'a str,
        storage: &'a Arc<dyn Storage>,
        budget: u64,
    ) -> Self {
        Self {
            directory,
            name,
            storage,
            access: Access::Read,
            clock: Arc::new(SystemClock),
            budget,
            spills: false,
            key_frames: KeyFrames::new(),
            damage: None,
            is_whole: false,
            roots_until: None,
            hard_only: false,
        }
    }
}

impl OpenRequest<'_> {
    /// Finds the image of a journal.
    ///
    /// # Errors
    /// Those of reading the journal's head. A problem of the image isn't an error here.
    pub(in crate::db) fn find(&self) -> Result<OpenedImage> {
        let shown = self.directory.display(self.name);
        let head = Head::read(&**self.storage, &shown)?;
        let has_none = self.storage.has_fixed_len();
        let mut found = OpenedImage {
            name: image::image_name(self.name),
            head,
            begun: None,
            pins: Arc::default(),
            damage: self.damage.cloned().unwrap_or_default(),
            witnesses: Vec::new(),
            is_doubtful: false,
            reason: None,
            notes: Vec::new(),
            stopped: None,
        };
        if has_none {
            return Ok(found);
        }
        // Before the survey, so that the survey uses the points that they prove.
        let pinned = match self.roots_until {
            None => {
                found.witnesses = image_witnesses(&**self.directory, self.name, &found.head);
                self.open_pinned(&mut found)
            }
            Some(until) => self.open_before(&found, until),
        };
        match pinned {
            Ok(None) => {}
            Ok(Some((usable, pin))) => {
                let pin = found.pins.add(pin, self.clock.elapsed());
                match self.begin(usable, &mut found, pin) {
                    Ok(begun) => found.begun = begun,
                    Err(error) if error.is_remote() => return Err(error),
                    Err(error) => self.set_aside(&mut found, error.to_string()),
                }
            }
            Err(error) if error.is_remote() => return Err(error),
            // A temporary read error may disappear.
            Err(error) => {
                found.notes.push(format!(
                    "the image isn't used, the journal was replayed: {error}; nothing is lost"
                ));
                found.reason = Some(error.to_string());
            }
        }
        Ok(found)
    }

    /// Opens the image and pins its newest root. If the root is still the newest one after that, its space isn't
    /// overwritten.
    fn open_pinned(&self, found: &mut OpenedImage) -> Result<Option<(Usable, RootPin)>> {
        let Self { access, damage, is_whole, .. } = *self;
        let how = Judging { access, damage, is_whole };
        for _ in 0..TRIES {
            let usable =
                match Image::open(self.directory, &found.name, &identity(&found.head), how)? {
                    Opened::Missing => return Ok(None),
                    Opened::SetAside(aside) => {
                        note(found, &aside);
                        return Ok(None);
                    }
                    Opened::Usable(usable) => usable,
                };
            let number = usable.root.number;
            let pin = match usable.image.pin(number, &*self.clock) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => match self.access {
                    Access::Write => RootPin::here(number),
                    // Not a word: it is so for every opening on this system.
                    Access::Read => return Ok(None),
                },
                pin => pin.map_err(|error| {
                    Error::io(format!("{}: can't pin its root", usable.image.path()), error)
                })?,
            };
            if usable.image.is_newest()? {
                return Ok(Some((*usable, pin)));
            }
        }
        let shown = self.directory.display(&found.name);
        let message = format!(
            "{shown}: other processes updated the image during each attempt to read it; try again later"
        );
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Opens and pins the newest root up to a transaction, of an image that others bring forward.
    fn open_before(&self, found: &OpenedImage, until: Txid) -> Result<Option<(Usable, RootPin)>> {
        let how =
            Judging { access: Access::Read, damage: Some(&found.damage), is_whole: self.is_whole };
        let (header, name) = (&found.head.header, &found.name);
        match root_before(self.directory, name, header, until, &*self.clock, how) {
            // No pins on this system.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            opened => opened,
        }
    }

    /// Finds the newest root that can be used, and the state that grew from there to a commit in a file; no state if
    /// there is no such root.
    pub(in crate::db) fn state_at(
        &self,
        file: &Arc<JournalFile>,
        end: Point,
    ) -> Result<(OpenedImage, Option<State>)> {
        loop {
            let mut found = self.find()?;
            let Some(begun) = &found.begun else { return Ok((found, None)) };
            let state = State::at(file, Some(&begun.past), begun.resume(), end.position);
            let state = state.and_then(|state| state.ending_with(end));
            let state = step!(OtherStateOpened, state, else Ok(State { store: begun.resume().finish(), point: end, file: Arc::clone(file) }));
            match state {
                Ok(state) => return Ok((found, Some(state))),
                // The next one is another root.
                Err(error) if error.kind() == ErrorKind::PageLost => {}
                Err(error) => {
                    self.set_aside(&mut found, error.to_string());
                    return Ok((found, None));
                }
            }
        }
    }

    /// Drops an image of forgotten history: the state at the beginning of the journal is newer. Nothing is wrong with
    /// that.
    fn outlived(&self, found: &mut OpenedImage) {
        if self.access == Access::Write
            && let Err(error) = image::discard(&**self.directory, &found.name)
        {
            found.notes.push(error.to_string());
            found.reason = Some(error.to_string());
        }
    }

    /// Takes the image out of the way: the journal says something else, or it is damaged.
    pub(in crate::db) fn set_aside(&self, found: &mut OpenedImage, reason: String) {
        found.begun = None;
        let aside = match self.access {
            Access::Read => Ok(SetAside { reason, kept_as: None }),
            Access::Write => image::set_aside(&**self.directory, &found.name, reason),
        };
        match aside {
            Ok(aside) => note(found, &aside),
            Err(error) => {
                found.notes.push(error.to_string());
                found.reason = Some(error.to_string());
            }
        }
    }

    /// Begins with a root, unless the history that it is of was forgotten, or the journal doesn't seem to have its
    /// point.
    fn begin(
        &self,
        usable: Usable,
        found: &mut OpenedImage,
        pin: Arc<RootPin>,
    ) -> Result<Option<OpenedRoot>> {
        let (root, header) = (&usable.root, &found.head.header);
        if !step!(OtherHistoryTrusted, self.has_points(found, root)?, else true) {
            found.is_doubtful = true;
            found.reason = Some(stale(&usable.image, root).to_string());
            return Ok(None);
        }
        let since = Since { segment: root.segment, point: root.point };
        let Some(past) = Past::since(&**self.directory, self.name, header, since)? else {
            self.outlived(found);
            return Ok(None);
        };
        OpenedRoot::new(usable, pin, past, self.budget, self.damage.is_some()).map(Some)
    }

    /// Returns true if the journal has the points of all roots, as far as can be determined without reading all of it.
    fn has_points(&self, found: &OpenedImage, root: &Root) -> Result<bool> {
        let OpenedImage { head, witnesses, .. } = found;
        for witness in witnesses {
            if !ends_there(&**self.storage, head, witness)? {
                return Ok(false);
            }
        }
        match root.segment == head.header.segment {
            true => self.has(head, root.point),
            // The seals prove the rest.
            false => Ok(root.segment < head.header.segment),
        }
    }

    /// Returns true if the journal has a point, as far as can be determined without reading all of it. For
    /// a point after the slots the frames decide. For a point before them a survey from the point must reach the slots.
    fn has(&self, head: &Head, point: Point) -> Result<bool> {
        let slots = head.copies().map(|slot| slot.point);
        let known = slots.chain([head.start()]).filter(|slot| slot.position <= point.position);
        let Some(from) = known.max_by_key(|slot| slot.position) else { return Ok(false) };
        let newest = head.hard_point();
        if newest.position > point.position {
            return Ok(point.position >= head.start().position);
        }
        let shown = self.directory.display(self.name);
        let reader = FrameReader::new(&**self.storage, head.hash, from, point.position);
        Ok(read_frames(reader, None, &shown, &mut |_| Ok(()))? == point)
    }
}

/// Opens and pins the newest root of the image up to a transaction, in a segment with this header or before it.
///
/// # Errors
/// `Unsupported` where the system has no pins.
pub(in crate::db) fn root_before<'d>(
    directory: &Arc<dyn Directory>,
    name: &str,
    header: &Header,
    until: Txid,
    clock: &dyn Clock,
    how: impl Into<Judging<'d>>,
) -> Result<Option<(Usable, RootPin)>> {
    // A new image that was made meanwhile may be for a later segment.
    let (journal_id, segment) = (header.journal_id, u64::MAX);
    let identity = Identity { journal_id, segment, segment_hash: 0 };
    let is_before = |root: &Root| root.segment <= header.segment && root.point.txid <= until;
    let found = Image::frame(directory, name, &identity, clock, how, &is_before)?;
    Ok(found.map(|KeyFrame { image, root, catalog, pin }| (Usable { image, root, catalog }, pin)))
}

/// Begins with the contents of a catalog; also returns the time of the last commit, if it was from a clock.
///
/// # Errors
/// `Corrupt`: it isn't one of a state; `Io`.
pub fn load(catalog: &Catalog, pager: &Arc<Pager>) -> Result<(i64, View)> {
    let too_short = || Error::corrupt("its catalog is too short");
    let (last, metadata) = catalog.metadata.split_first_chunk().ok_or_else(too_short)?;
    let roots: Vec<_> = catalog.arrays.iter().map(BaseRoot::of).collect();
    Ok((i64::from_le_bytes(*last), View::load(metadata, &roots, pager)?))
}

fn note(found: &mut OpenedImage, aside: &SetAside) {
    let SetAside { reason, kept_as } = aside;
    found.reason = Some(reason.clone());
    found.notes.push(match kept_as {
        Some(kept) => format!(
            "the image was set aside as `{kept}` and the journal replayed: {reason}; nothing is lost"
        ),
        None => format!("the image isn't used, the journal was replayed: {reason}; nothing is lost"),
    });
}

pub(in crate::db) fn stale(image: &Image, root: &Root) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{}: it stands for transaction {} at position {}, where the journal has another one, or none",
            image.path(),
            root.point.txid,
            root.point.position
        ),
    )
}
