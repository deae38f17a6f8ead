//! Readers that start from the image: they never write, and their only lock is the pin of their root.

use std::sync::Arc;

use crate::db::image::opening::{Begun, Found, Looking};
use crate::db::options::Options;
use crate::db::present::segment::JournalFile;
use crate::db::progress::Watched;
use crate::db::replay::source::{FrameSource, is_damaged};
use crate::db::replay::state::{Replay, State};
use crate::db::replay::unapplied::{Unapplied, replay_before};
use crate::db::replay::witness::identity;
use crate::image::{Damage, Image, Root, image_name};
use crate::journal::{Head, Point, Recovery, Rule, Survey};
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
        let looking = Looking {
            damage: Some(&damage),
            is_whole: options.verify_image,
            ..Looking::to_read(&directory, name, watched, budget)
        };
        let mut found = looking.find()?;
        let (head, replay, point) = match options.hard_only {
            true => hard(&looking, &mut found, watched)?,
            false => all(&looking, &mut found, watched)?,
        };
        let store = replay.finish();
        let began = found.begun.as_ref().filter(|_| found.stopped.is_none()).map_or(0, reached);
        let Found { before, notes: mut findings, stopped, .. } = found;
        let shown = directory.display(name);
        findings.extend(stopped.iter().map(|stopped| stopped.unapplied.explain(&shown)));
        let unapplied = stopped.map(|stopped| stopped.unapplied);
        damage.end_opening(damage.count());
        let (storage, segment) = (Arc::clone(storage), head.header.segment);
        let file = JournalFile::new(storage, segment, Arc::clone(&directory), name).behind(before);
        let file = Arc::new(file.noting_in(&damage).knowing(head));
        let follower = Follower { state: State { store, point, file }, began };
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
        let looking = Looking {
            damage: Some(&self.damage),
            is_whole: true,
            // Others may have brought the image forward since.
            roots_until: Some(point.txid),
            ..Looking::to_read(&self.directory, &self.name, &*file.storage, self.budget)
        };
        let (found, store) = looking.state_at(point)?;
        let (store, began) = match (store, &found.begun) {
            (Some(store), Some(Begun { root, .. })) => {
                (store, file.reach_of(root.segment, root.point.position))
            }
            _ => (looking.replay_exactly(None, Replay::default(), point)?, 0),
        };
        Ok(Follower { state: State { store, point, file: Arc::clone(file) }, began })
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
        let looking = Looking {
            damage: Some(damage),
            ..Looking::to_read(directory, name, &*file.storage, *budget)
        };
        let found = looking.find().ok()?;
        let begun = found.begun.as_ref()?;
        let from = begun.root.point;
        // Its position in the journal is proven by the frame after it, or by being the end.
        if begun.root.segment != file.segment
            || from.position > to
            || (from.position == to && from != end)
        {
            return None;
        }
        let (replay, point) = looking.replay(Some(&begun.past), begun.resume(), to).ok()?;
        if point.position >= end.position && point != end {
            return None;
        }
        let state = State { store: replay.finish(), point, file: Arc::clone(file) };
        Some(Follower { state, began: file.reach(from.position) })
    }
}

/// Replays all accepted frames; returns where that ends, and the head of the file.
fn all(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Head, Replay, Point)> {
    let (survey, replay, _) = looking.survey(found, watched, Recovery::Checked, is_damaged)?;
    if is_damaged(&survey) {
        return Err(survey.damage(&looking.directory.display(looking.name)));
    }
    let end = found.stopped.as_ref().map_or(survey.end, |stopped| stopped.point);
    Ok((survey.head, replay, end))
}

/// Replays the part known to be on permanent storage; returns where that ends, and the head of the file.
fn hard(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Head, Replay, Point)> {
    let shown = looking.directory.display(looking.name);
    if let Some(begun) = &found.begun {
        let from = begun.past.point();
        let rule = Rule::new(Recovery::Checked).after(from);
        let source = FrameSource { past: None, storage: watched, shown: &shown };
        let survey = source.survey(rule, is_damaged, || ());
        let least = from.map_or(0, |from| from.position);
        let survey = survey.ok().map(|(survey, ())| survey);
        let is_fit = |survey: &Survey| !is_damaged(survey) && least <= hard_position(survey);
        if let Some(survey) = survey.filter(is_fit)
            && let Ok((replay, point)) =
                looking.replay(Some(&begun.past), begun.resume(), hard_position(&survey))
        {
            found.before = begun.past.bytes();
            looking.check_end(found, &survey)?;
            return Ok((survey.head, replay, point));
        }
        // Only the whole journal shows which of the two is wrong.
        found.begun = None;
    }
    let survey = FrameSource { past: None, storage: watched, shown: &shown }.verify()?;
    looking.check_end(found, &survey)?;
    let (replay, end) = replay_before(|until| {
        looking.replay(None, Replay::default().until(until), hard_position(&survey))
    })?;
    found.stopped = looking.stopped(&survey, None, &replay)?;
    let end = found.stopped.as_ref().map_or(end, |stopped| stopped.point);
    Ok((survey.head, replay, end))
}

/// Returns the end of the journal that is known to be on permanent storage, also according to its writers.
pub(in crate::db) fn hard_position(survey: &Survey) -> u64 {
    let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
    survey.hard.max(told).min(survey.end.position)
}

/// Returns the end of a root that was just opened, in bytes of the journal: the first segment read after it is
/// counted from its beginning.
fn reached(begun: &Begun) -> u64 {
    begun.root.point.position
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
