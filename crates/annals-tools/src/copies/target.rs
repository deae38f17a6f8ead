//! The copy that is updated: at every moment, and after every crash, a journal whose last transaction is one of the
//! source's.

use std::io;
use std::sync::Arc;

use super::Meter;
use super::place::Place;
use super::source::Part;
use annals::{Error, ErrorKind, Result};
use annals_journal::format::{FRAMES_AT, Header, Secret};
use annals_journal::segments::{self, Maker, Next, Seal, Sealing};
use annals_journal::{
    Checkpoints, Frame, FrameReader, Head, Point, Recovery, Rule, Settled, Survey, first_slot,
    head_with,
};
use annals_storage::{Access, Clock, Directory, Hold, Lock, Storage};

/// So much is written at once.
const PIECE: usize = 1 << 20;
/// The bytes after which a commit is made durable, and published.
const BATCH: u64 = 16 << 20;
/// How often a file is opened again that is replaced meanwhile.
const TRIES: usize = 100;

/// A journal that is written, in any directory; no other process writes it meanwhile.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) place: Place,
    storage: Arc<dyn Storage>,
    pub(super) header: Header,
    checkpoints: Checkpoints,
    /// The last commit that is on permanent storage.
    pub(super) end: Point,
    /// The last commit that was taken. The frames after it, up to `taken`, are in `piece` or written.
    reached: Point,
    taken: Point,
    piece: Vec<u8>,
    /// The secret drawn for this opening.
    secret: Secret,
}

impl Target {
    /// Opens a copy, recovers it if necessary, and locks it; `None` if there is none.
    pub(super) fn open(
        directory: &Arc<dyn Directory>,
        name: &str,
        clock: &dyn Clock,
    ) -> Result<Option<Self>> {
        let shown = directory.display(name);
        let io = |error| Error::io(format!("{shown}: can't open it"), error);
        for _ in 0..TRIES {
            let storage = match directory.open(name, Access::Write) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened
                    .map_err(|error| annals_journal::cannot_open(&shown, Access::Write, error))?,
            };
            if storage.has_fixed_len() {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{shown}: a device can't be a copy: it has no room for segments"),
                ));
            }
            if !storage.try_lock(Lock::Head, Hold::Exclusive).map_err(io)? {
                return Err(annals_journal::busy(&shown, annals_journal::holder(&*storage)));
            }
            if !storage.is_linked().map_err(io)? {
                continue;
            }
            segments::refuse_kept(&**directory, name, &*storage)?;
            let head = Head::read(&*storage, &shown)?;
            let from = head.newest_slot().map(|slot| slot.point);
            if let Some(end) = from {
                see_end(&*storage, &head, end, &shown)?;
            }
            let rule = Rule::new(Recovery::Checked).after(from);
            let survey = Survey::make(&*storage, &shown, rule, |_, _| Ok(()))?;
            if let Some(seal) = &survey.sealed {
                annals_journal::refuse(&shown, &survey, Recovery::Checked)?;
                let by = Maker { clock, shared: false };
                segments::finish(&**directory, name, &*storage, &survey, seal, by)?;
                continue;
            }
            let (recovery, secret) = (Recovery::Checked, clock.secret());
            let settled =
                annals_journal::settle(&*storage, &**directory, name, &survey, recovery, secret)?;
            if survey.is_empty() {
                // The process that named it may have ended before that was durable.
                let kept = match head.header.segment {
                    0 => annals_journal::keep_name(&**directory, name),
                    _ => segments::keep_path(&**directory, name, &head.header),
                };
                kept.map_err(io)?;
            }
            let place = Place::new(Arc::clone(directory), name);
            let header = &head.header;
            return Self::begin(place, storage, header, survey.end, &settled, secret).map(Some);
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{shown}: the file was replaced during each attempt to open it; try again later"
            ),
        ))
    }

    /// Checks that the copy is still at its path, and has its end: a file without a name is no copy.
    pub(super) fn see_path(&self) -> Result<()> {
        let shown = &self.place.shown;
        let io = |error| Error::io(format!("{shown}: can't look for it"), error);
        if self.storage.len().map_err(io)? < self.end.position {
            return Err(lost(shown, self.end));
        }
        match self.storage.is_linked().map_err(io)? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::NotFound,
                format!("{shown}: it was removed, renamed or replaced meanwhile: push again"),
            )),
        }
    }

    /// Makes a copy that begins as a segment does.
    pub(super) fn create(
        directory: &Arc<dyn Directory>,
        name: &str,
        part: &Part,
        clock: &dyn Clock,
    ) -> Result<Self> {
        let shown = directory.display(name);
        let fill = |storage: &dyn Storage, secret| begin_as(storage, secret, part, &shown);
        let (next, point) = Next::copy(&**directory, name, part.header(), clock, fill)?;
        let io = |error| Error::io(format!("{shown}: can't create it"), error);
        if !next.appear(&**directory, name).map_err(io)? {
            let message = format!("{shown}: somebody else has just created it: try again");
            return Err(Error::new(ErrorKind::Busy, message));
        }
        Self::begin_in(Place::new(Arc::clone(directory), name), next, point)
    }

    /// Begins in a new segment.
    fn begin_in(place: Place, next: Next, point: Point) -> Result<Self> {
        let settled = Settled::new_journal(point, next.secret);
        Self::begin(place, next.storage, &next.header, point, &settled, next.secret)
    }

    fn begin(
        place: Place,
        storage: Arc<dyn Storage>,
        header: &Header,
        end: Point,
        settled: &Settled,
        secret: Secret,
    ) -> Result<Self> {
        let (hash, pid) = (header.hash(), std::process::id());
        let checkpoints =
            Checkpoints::new(Arc::clone(&storage), &place.shown, hash, pid, end, settled);
        checkpoints.tell()?;
        Ok(Self {
            place,
            storage,
            header: *header,
            checkpoints,
            end,
            reached: end,
            taken: end,
            piece: Vec::new(),
            secret,
        })
    }

    /// True if nothing was committed in its newest segment, except the state at its beginning.
    pub(super) fn is_empty(&self) -> bool {
        self.end.txid < annals::Txid(self.header.first_own_txid())
    }

    /// Copies the frames of a segment up to `limit`, which is the end of a commit, or up to its seal, which it
    /// returns. All that was copied is on permanent storage then.
    pub(super) fn copy(
        &mut self,
        part: &Part,
        limit: u64,
        meter: &mut Meter,
    ) -> Result<Option<Sealing>> {
        let mut reader = part.reader(self.taken, limit);
        let mut sealing = None;
        while let Some(frame) = reader.next().map_err(|error| part.unreadable(error))? {
            if let Some(unknown) = frame.header.unknown() {
                let message = format!(
                    "{}: holds {unknown}, which only a newer version of Annals understands: use a newer \
                     program",
                    part.shown
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            if frame.header.is_seal() {
                sealing = seal_before(&frame, self.taken, part);
                break;
            }
            meter.add(frame.bytes.len() as u64)?;
            self.take(&frame)?;
        }
        let is_done = match part.successor {
            Some(_) => sealing.is_some(),
            None => sealing.is_none() && self.taken.position == limit,
        };
        if !is_done || self.reached != self.taken {
            return Err(part.damaged(self.taken.position));
        }
        self.harden()?;
        Ok(sealing)
    }

    /// Takes a frame that follows the last one.
    fn take(&mut self, frame: &Frame<'_>) -> Result<()> {
        frame.append_to(&mut self.piece);
        (self.taken.position, self.taken.chain) = (frame.end, frame.chain);
        if frame.header.is_commit() {
            self.taken.txid = annals::Txid(frame.header.txid);
            self.reached = self.taken;
        }
        if self.piece.len() >= PIECE {
            self.write()?;
            if self.taken.position - self.end.position >= BATCH && self.reached == self.taken {
                self.harden()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        self.checkpoints.draw_secret(|| self.secret)?;
        let at = self.taken.position - self.piece.len() as u64;
        self.checkpoints.write_frames(at, &self.piece).map_err(|error| {
            let len = self.piece.len();
            Error::io(
                format!("{}: can't write {len} bytes at position {at}", self.place.shown),
                error,
            )
        })?;
        self.piece.clear();
        Ok(())
    }

    /// Makes all that was taken durable: it ends with a commit.
    fn harden(&mut self) -> Result<()> {
        self.write()?;
        if self.end != self.reached {
            self.checkpoints.end_batch(self.reached)?;
            self.end = self.reached;
        }
        Ok(())
    }

    /// Continues in the next segment, which begins like the source's; the old one gets its seal.
    pub(super) fn go_on(
        &mut self,
        sealing: &Sealing,
        part: &Part,
        clock: &dyn Clock,
    ) -> Result<()> {
        let io =
            |error| Error::io(format!("{}: can't begin the next segment", self.place.shown), error);
        self.close()?;
        let fill =
            |storage: &dyn Storage, secret| begin_as(storage, secret, part, &self.place.shown);
        let directory = Arc::clone(&self.place.directory);
        let (next, point) = Next::copy(&*directory, &self.place.name, part.header(), clock, fill)?;
        let ready = segments::keep(&*directory, &self.place.name, &*self.storage, &self.header)
            .and_then(|()| self.checkpoints.seal(sealing));
        if let Err(error) = ready {
            next.discard(&*directory);
            return Err(error);
        }
        next.publish(&*directory, &self.place.name).map_err(io)?;
        self.enter(next, point)
    }

    /// Puts another segment in the place of the newest one, in which nothing was committed.
    pub(super) fn replace(&mut self, part: &Part, clock: &dyn Clock) -> Result<()> {
        let io = |error| Error::io(format!("{}: can't begin the segment", self.place.shown), error);
        let fill =
            |storage: &dyn Storage, secret| begin_as(storage, secret, part, &self.place.shown);
        let directory = Arc::clone(&self.place.directory);
        let (next, point) = Next::copy(&*directory, &self.place.name, part.header(), clock, fill)?;
        next.publish(&*directory, &self.place.name).map_err(io)?;
        self.enter(next, point)
    }

    fn enter(&mut self, next: Next, point: Point) -> Result<()> {
        *self = Self::begin_in(self.place.clone(), next, point)?;
        Ok(())
    }

    /// Closes the copy properly.
    pub(super) fn close(&self) -> Result<()> {
        self.checkpoints.close()
    }
}

/// Checks that the last transaction that a copy is known to have is in it: later frames must not be appended after a
/// gap. All before it verified when it was copied.
fn see_end(storage: &dyn Storage, head: &Head, end: Point, shown: &str) -> Result<()> {
    let io = |error| Error::io(format!("{shown}: can't read the copy"), error);
    let mut reader = FrameReader::new(storage, head.hash, end, storage.len().map_err(io)?);
    match end == head.start() || reader.ends_at(end).map_err(io)? {
        true => Ok(()),
        false => Err(lost(shown, end)),
    }
}

/// Returns the error that the end of a copy is damaged.
fn lost(shown: &str, end: Point) -> Error {
    let Point { position, txid, .. } = end;
    Error::corrupt(format!(
        "{shown}: damaged: transaction {txid}, which ends at position {position} and was on permanent storage, isn't \
         there any more, or doesn't verify; nothing was changed: look at it with `annals check {}`, and push to a new \
         file",
        annals_journal::shown_path(shown)
    ))
}

/// Reads a seal right after the last commit, whose next segment exists.
fn seal_before(frame: &Frame<'_>, end: Point, part: &Part) -> Option<Sealing> {
    let seal = Seal::of(frame).filter(|_| frame.header.position == end.position)?;
    let follows = part.successor.as_ref().is_some_and(|next| seal.is_followed_by(next));
    let sealing = Sealing { position: frame.header.position, bytes: frame.bytes.to_vec(), seal };
    follows.then_some(sealing)
}

/// Begins a segment in an empty file: with its header, and the state if it begins with that.
fn begin_as(storage: &dyn Storage, secret: Secret, part: &Part, shown: &str) -> Result<Point> {
    let io = |error| Error::io(format!("{shown}: can't write it"), error);
    let header = part.header();
    let mut at = FRAMES_AT;
    let mut reader = part.reader(part.head.start(), part.len()?);
    let (mut end, mut bytes) = (part.head.start(), Vec::new());
    while header.begins_with_state() && end.txid < annals::Txid(header.first_txid) {
        let frame = reader.next().map_err(|error| part.unreadable(error))?;
        let Some(frame) = frame.filter(|frame| frame.header.unknown().is_none()) else {
            return Err(part.damaged(at));
        };
        bytes.clear();
        frame.append_to(&mut bytes);
        storage.write_at(at, &bytes).map_err(io)?;
        at = frame.end;
        end = reader.point();
    }
    let head = head_with(header, &first_slot(end, secret));
    storage.write_at(0, &head).and_then(|()| storage.flush()).map_err(io)?;
    Ok(end)
}
