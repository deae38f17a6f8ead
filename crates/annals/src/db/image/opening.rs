//! Opening from the image: finding it, and checking that the journal has its point.
//!
//! An unusable image is renamed as damaged, or left in place by a process that doesn't have it alone. Either way the
//! journal is replayed from its beginning, and the reason is reported.

use std::io;
use std::sync::Arc;

use annals_schema::Txid;
use annals_storage::step;

use crate::db::image::image_state::ImageState;
use crate::db::image::pins::Pins;
use crate::db::progress::Watched;
use crate::db::replay::segments::{Past, Since};
use crate::db::replay::source::{FrameSource, read_frames};
use crate::db::replay::state::Replay;
use crate::db::replay::unapplied::{Before, MakeRoom};
use crate::db::replay::witness::{ends_there, identity, image_witnesses};
use crate::image::{
    self, Catalog, Damage, Guarded, Identity, Image, Judging, KeyFrame, KeyFrames, Opened, Root,
    RootPin, SetAside, Source, Usable, Witness,
};
use crate::journal::format::Header;
use crate::journal::{FrameReader, Head, Point, Survey};
use crate::storage::{Access, Clock, Directory, Storage, SystemClock};
use crate::store::{BaseRoot, Pager, Store, View};
use crate::{Error, ErrorKind, Result};

/// The file at the image's name.
#[derive(Debug)]
pub(in crate::db) struct Found {
    /// The name of the image.
    pub(in crate::db) name: String,
    /// Which journal it would belong to.
    pub(in crate::db) identity: Identity,
    /// The head of the journal.
    pub(in crate::db) head: Head,
    /// The bytes of the journal in earlier segments that were read, from their beginning.
    pub(in crate::db) before: u64,
    /// The beginning of the store; `None`: it is replayed.
    pub(in crate::db) begun: Option<Begun>,
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

/// The beginning of a store.
#[derive(Debug)]
pub(in crate::db) struct Begun {
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

/// The file at the image's name.
enum Looked {
    Nothing,
    Pinned(Box<Usable>, RootPin),
    SetAside(SetAside),
}

/// The decision about a root that was found.
enum Rooted {
    At(Box<Begun>),
    /// The history that it is of was forgotten.
    Outlived,
    /// The journal doesn't seem to have its point.
    Doubtful,
}

/// The image to open, and how.
#[derive(Clone)]
pub(in crate::db) struct Looking<'a> {
    pub(in crate::db) directory: &'a Arc<dyn Directory>,
    /// The name of the journal.
    pub(in crate::db) name: &'a str,
    pub(in crate::db) storage: &'a dyn Storage,
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
}

impl Found {
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

impl Begun {
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

impl<'a> Looking<'a> {
    /// Makes a request for opening an image that must not be changed.
    pub(in crate::db) fn to_read(
        directory: &'a Arc<dyn Directory>,
        name: &'a str,
        storage: &'a dyn Storage,
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
        }
    }
}

impl Looking<'_> {
    /// Finds the image of a journal.
    ///
    /// # Errors
    /// Those of reading the journal's head. A problem of the image isn't an error here.
    pub(in crate::db) fn find(&self) -> Result<Found> {
        let shown = self.directory.display(self.name);
        let head = Head::read(self.storage, &shown)?;
        let has_none = self.storage.has_fixed_len();
        let mut found = Found {
            name: image::image_name(self.name),
            identity: identity(&head),
            head,
            before: 0,
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
                self.open_pinned(&found)
            }
            Some(until) => self.open_before(&found, until),
        };
        match pinned {
            Ok(Looked::Nothing) => {}
            Ok(Looked::Pinned(usable, pin)) => {
                let pin = found.pins.add(pin, self.clock.elapsed());
                let stale = stale(&usable.image, &usable.root);
                match self.begin(*usable, &found, pin) {
                    Ok(Rooted::At(begun)) => found.begun = Some(*begun),
                    Ok(Rooted::Outlived) => self.outlived(&mut found),
                    Ok(Rooted::Doubtful) => {
                        (found.is_doubtful, found.reason) = (true, Some(stale.to_string()));
                    }
                    Err(error) if error.is_remote() => return Err(error),
                    Err(error) => self.set_aside(&mut found, error.to_string()),
                }
            }
            Ok(Looked::SetAside(aside)) => note(&mut found, &aside),
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
    fn open_pinned(&self, found: &Found) -> Result<Looked> {
        let Self { access, damage, is_whole, .. } = *self;
        let how = Judging { access, damage, is_whole };
        for _ in 0..TRIES {
            let usable = match Image::open(self.directory, &found.name, &found.identity, how)? {
                Opened::Missing => return Ok(Looked::Nothing),
                Opened::SetAside(aside) => return Ok(Looked::SetAside(aside)),
                Opened::Usable(usable) => usable,
            };
            let number = usable.root.number;
            let pin = match usable.image.pin(number, &*self.clock) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => match self.access {
                    Access::Write => RootPin::here(number),
                    // Not a word: it is so for every opening on this system.
                    Access::Read => return Ok(Looked::Nothing),
                },
                pin => pin.map_err(|error| {
                    Error::io(format!("{}: can't pin its root", usable.image.path()), error)
                })?,
            };
            if usable.image.is_newest()? {
                return Ok(Looked::Pinned(usable, pin));
            }
        }
        let shown = self.directory.display(&found.name);
        let message = format!(
            "{shown}: other processes updated the image during each attempt to read it; try again later"
        );
        Err(Error::new(ErrorKind::Busy, message))
    }

    /// Opens and pins the newest root up to a transaction, of an image that others bring forward.
    fn open_before(&self, found: &Found, until: Txid) -> Result<Looked> {
        let how =
            Judging { access: Access::Read, damage: Some(&found.damage), is_whole: self.is_whole };
        let (header, name) = (&found.head.header, &found.name);
        match root_before(self.directory, name, header, until, &*self.clock, how) {
            Ok(Some((usable, pin))) => Ok(Looked::Pinned(Box::new(usable), pin)),
            Ok(None) => Ok(Looked::Nothing),
            // No pins on this system.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Looked::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Returns the state of the image from now on; `None` if there can be none.
    pub(in crate::db) fn image_state(&self, found: &Found) -> Option<Arc<ImageState>> {
        let (clock, key_frames) = (Arc::clone(&self.clock), self.key_frames);
        (!self.storage.has_fixed_len()).then(|| {
            Arc::new(ImageState::new(
                self.directory,
                found,
                clock,
                self.budget,
                self.spills,
                key_frames,
            ))
        })
    }

    /// Continues a replay up to the end of a commit at position `to`: over the frames after a root, if they are given,
    /// or over all that is needed to know the state.
    pub(in crate::db) fn replay(
        &self,
        after: Option<&Past>,
        mut replay: Replay,
        to: u64,
    ) -> Result<(Replay, Point)> {
        let shown = self.directory.display(self.name);
        let head = Head::read(self.storage, &shown)?;
        let storage = &Watched::new(self.storage, None);
        let mut through = |past: &Past| {
            let source = FrameSource { past: Some(past), storage, shown: &shown };
            replay.advance(&source, &head, to)
        };
        let end = match after {
            Some(past) => through(past)?,
            None => through(&Past::needed(&**self.directory, self.name, &head.header)?)?,
        };
        Ok((replay, end))
    }

    /// Does so, and returns the store; fails unless it ends with the commit whose end is given.
    pub(in crate::db) fn replay_exactly(
        &self,
        after: Option<&Past>,
        replay: Replay,
        end: Point,
    ) -> Result<Store> {
        match self.replay(after, replay, end.position)? {
            (replay, point) if point == end => Ok(replay.finish()),
            _ => Err(Error::corrupt(
                "replaying the journal from the image leads to another commit than expected, so the image is of \
                 another history",
            )),
        }
    }

    /// Finds the newest root that can be used, and the store that grew from there to a commit; no store if there
    /// is no such root.
    pub(in crate::db) fn state_at(&self, end: Point) -> Result<(Found, Option<Store>)> {
        loop {
            let mut found = self.find()?;
            let Some(begun) = &found.begun else { return Ok((found, None)) };
            let store = self.replay_exactly(Some(&begun.past), begun.resume(), end);
            match step!(OtherStateOpened, store, else Ok(begun.resume().finish())) {
                Ok(store) => return Ok((found, Some(store))),
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
    fn outlived(&self, found: &mut Found) {
        if self.access == Access::Write
            && let Err(error) = image::discard(&**self.directory, &found.name)
        {
            found.notes.push(error.to_string());
            found.reason = Some(error.to_string());
        }
    }

    /// Takes the image out of the way: the journal says something else, or it is damaged.
    pub(in crate::db) fn set_aside(&self, found: &mut Found, reason: String) {
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

    /// Begins with a root.
    fn begin(&self, usable: Usable, found: &Found, pin: Arc<RootPin>) -> Result<Rooted> {
        let (root, head) = (&usable.root, &found.head);
        let header = &head.header;
        for witness in &found.witnesses {
            if !step!(OtherHistoryTrusted, ends_there(self.storage, head, witness)?, else true) {
                return Ok(Rooted::Doubtful);
            }
        }
        let is_known = match root.segment == header.segment {
            true => step!(OtherHistoryTrusted, self.has(head, root.point)?, else true),
            // The seals prove the rest.
            false => root.segment < header.segment,
        };
        if !is_known {
            return Ok(Rooted::Doubtful);
        }
        let since = Since { segment: root.segment, point: root.point };
        let past = Past::since(&**self.directory, self.name, header, since)?;
        let Some(past) = past else { return Ok(Rooted::Outlived) };
        let begun = Begun::new(usable, pin, past, self.budget, self.damage.is_some());
        begun.map(|begun| Rooted::At(Box::new(begun)))
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
        let reader = FrameReader::new(self.storage, head.hash, from, point.position);
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

/// Allows writing changes larger than memory to the image, if there can be one.
pub(in crate::db) fn over(replay: Replay, image_state: Option<&Arc<ImageState>>) -> Replay {
    match image_state {
        Some(image_state) => replay.spilling(Arc::clone(image_state) as Arc<dyn MakeRoom>),
        None => replay,
    }
}

/// Begins with the contents of a catalog; also returns the time of the last commit, if it was from a clock.
pub(in crate::db) fn load(catalog: &Catalog, pager: &Arc<Pager>) -> Result<(i64, View)> {
    let too_short = || Error::corrupt("its catalog is too short");
    let (last, metadata) = catalog.metadata.split_first_chunk().ok_or_else(too_short)?;
    let roots: Vec<_> = catalog.arrays.iter().map(BaseRoot::of).collect();
    Ok((i64::from_le_bytes(*last), View::load(metadata, &roots, pager)?))
}

fn note(found: &mut Found, aside: &SetAside) {
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
