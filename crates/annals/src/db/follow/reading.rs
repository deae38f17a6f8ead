//! Readers that start from the image: they never write, and their only lock is the pin of their root.

use std::sync::Arc;

use crate::db::follow::opening::{OpenRequest, OpenedImage, OpenedRoot};
use crate::db::follow::options::Options;
use crate::db::follow::source::is_damaged;
use crate::db::follow::state::{Replay, State};
use crate::db::follow::unapplied::Unapplied;
use crate::db::follow::witness::identity;
use crate::db::present::segment::JournalFile;
use crate::db::progress::Watched;
use crate::image::{Damage, Image, Root, image_name};
use crate::journal::{Point, Recovery};
use crate::storage::{Directory, Storage};
use crate::{Error, Result};

/// The progress of the image, in bytes of the journal, at which a reader starts again from its newest root: about a
/// hundredth of a second of replay.
pub(in crate::db) const WORTH_IT: u64 = 1 << 20;

/// The image to open for a reader.
#[derive(Debug)]
pub(in crate::db) struct Reading {
    directory: Arc<dyn Directory>,
    /// The name of the journal.
    name: String,
    budget: u64,
    /// The known damage of images.
    damage: Arc<Damage>,
}

/// The state that a reader shows.
#[derive(Debug)]
pub(in crate::db) struct Follower {
    pub(in crate::db) state: State,
    /// The end of the image's root under it, in bytes of the journal as [`JournalFile::reach`] counts them; 0: there is
    /// none.
    pub(in crate::db) began: u64,
}

/// The beginning of a reader.
#[derive(Debug)]
pub(in crate::db) struct Beginning {
    pub(in crate::db) reading: Reading,
    pub(in crate::db) follower: Follower,
    /// A sentence for each thing worth telling a person.
    pub(in crate::db) findings: Vec<String>,
    /// The commit that doesn't apply, if there is one: the state ends before it.
    pub(in crate::db) unapplied: Option<Unapplied>,
}

impl Reading {
    /// Opens a journal that others may be writing.
    ///
    /// # Errors
    /// Those of surveying all of the journal. A problem of the image isn't an error here.
    pub(in crate::db) fn open(
        directory: Arc<dyn Directory>,
        name: &str,
        storage: &Arc<dyn Storage>,
        watched: &Watched<'_>,
        options: &Options,
    ) -> Result<Beginning> {
        let (damage, budget) = (Arc::<Damage>::default(), options.budget());
        let request = OpenRequest {
            damage: Some(&damage),
            is_whole: options.verify_image,
            hard_only: options.hard_only,
            ..OpenRequest::to_read(&directory, name, storage, budget)
        };
        let mut found = request.find()?;
        let (survey, state, _) =
            request.open(&mut found, watched, Recovery::Checked, is_damaged)?;
        let shown = directory.display(name);
        if is_damaged(&survey) {
            return Err(survey.damage(&shown));
        }
        // The first segment read after a root is counted from its beginning.
        let root = found.begun.as_ref().filter(|_| found.stopped.is_none());
        let began = root.map_or(0, |begun| begun.root.point.position);
        let OpenedImage { notes: mut findings, stopped, .. } = found;
        findings.extend(stopped.iter().map(|stopped| stopped.unapplied.explain(&shown)));
        let unapplied = stopped.map(|stopped| stopped.unapplied);
        damage.end_opening(damage.count());
        let follower = Follower { state, began };
        let reading = Self { directory, name: name.to_owned(), budget, damage };
        Ok(Beginning { reading, follower, findings, unapplied })
    }

    /// Returns how much of the image may be kept in memory, in bytes.
    pub(in crate::db) const fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the damage of the image found so far.
    pub(in crate::db) const fn damage(&self) -> &Arc<Damage> {
        &self.damage
    }

    /// True if a read found a page of the state lost. Of an image on another machine more would have to be fetched than
    /// anybody asked for, up to the whole journal: there a page stays lost until the image is replaced.
    pub(in crate::db) fn is_state_lost(&self) -> bool {
        self.damage.is_state_lost() && !self.directory.is_remote()
    }

    /// Opens the state at a commit again without the lost pages: from an older root of the image, or the journal. A
    /// failure is reported, and isn't an error: the reader continues unchanged.
    pub(in crate::db) fn reopen(&self, state: &State) -> Option<Follower> {
        let noted = self.damage.begin_opening();
        match self.reopened(&state.file, state.point) {
            Ok(follower) => {
                self.damage.end_opening(noted);
                Some(follower)
            }
            Err(error) => {
                self.damage.report(not_opened_again(&error));
                None
            }
        }
    }

    fn reopened(&self, file: &Arc<JournalFile>, point: Point) -> Result<Follower> {
        let request = OpenRequest {
            damage: Some(&self.damage),
            is_whole: true,
            // Others may have brought the image forward since.
            roots_until: Some(point.txid),
            ..OpenRequest::to_read(&self.directory, &self.name, &file.storage, self.budget)
        };
        let (found, state) = request.state_at(file, point)?;
        if let (Some(state), Some(OpenedRoot { root, .. })) = (state, &found.begun) {
            return Ok(Follower { state, began: file.reach_of(root.segment, root.point.position) });
        }
        let state = State::at(file, None, Replay::default(), point.position)?;
        Ok(Follower { state: state.ending_with(point)?, began: 0 })
    }

    /// Starts again from the newest root of the image, up to `to`, if that has advanced far enough since the reader
    /// began. A failure isn't an error: the reader continues unchanged.
    pub(in crate::db) fn restart_from_root(
        &self,
        follower: &Follower,
        to: u64,
        end: Point,
    ) -> Option<Follower> {
        let Follower { state: State { file, .. }, began } = follower;
        let (began, reached) = (*began, file.reach(to));
        if !is_worth_it(began, reached, reached) {
            return None; // and nothing is read
        }
        let Self { directory, name, budget, damage, .. } = self;
        let worth = |root: &Root| {
            root.segment == file.segment
                && is_worth_it(began, file.reach(root.point.position), reached)
        };
        Image::peek(&**directory, &image_name(name), &identity(file.head().ok()?)).filter(worth)?;
        let request = OpenRequest {
            damage: Some(damage),
            ..OpenRequest::to_read(directory, name, &file.storage, *budget)
        };
        let found = request.find().ok()?;
        let begun = found.begun.as_ref()?;
        let from = begun.root.point;
        // Its position in the journal is proven by the frame after it, or by being the end.
        if begun.root.segment != file.segment
            || from.position > to
            || (from.position == to && from != end)
        {
            return None;
        }
        let state = State::at(file, Some(&begun.past), begun.resume(), to).ok()?;
        if to >= end.position && state.point != end {
            return None;
        }
        Some(Follower { state, began: file.reach(from.position) })
    }
}

/// Returns what is reported if a state can't be opened again.
pub(in crate::db) fn not_opened_again(error: &Error) -> String {
    format!("the state couldn't be opened again: {error}")
}

/// True if a store that began at `from` should start again from a root at `newest` to reach `end`: less must be
/// replayed again than the image has advanced.
pub(in crate::db) const fn is_worth_it(from: u64, newest: u64, end: u64) -> bool {
    let forward = newest.saturating_sub(from);
    newest <= end && forward >= WORTH_IT && forward >= end - newest
}
