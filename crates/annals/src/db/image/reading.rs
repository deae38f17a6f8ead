//! Readers that start from the image: they never write, and their only lock is the pin of their root.

use std::sync::Arc;

use crate::db::image::opening::{Begun, Found, Looking, exactly};
use crate::db::options::Options;
use crate::db::present::segment::JournalFile;
use crate::db::progress::Watched;
use crate::db::replay::scan::{Replay, is_damaged, survey, survey_moving};
use crate::db::replay::unapplied::{Before, Unapplied};
use crate::image::{Damage, Identity, Image, Root, image_name};
use crate::journal::{Point, Recovery, Rule, Survey};
use crate::storage::Directory;
use crate::store::{Store, View};
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

/// The beginning of a reader's state.
#[derive(Debug)]
pub(in crate::db) struct Beginning {
    pub(in crate::db) survey: Survey,
    pub(in crate::db) replayed: Replayed,
    /// Which segment of which journal it is.
    pub(in crate::db) identity: Identity,
    /// The bytes of the journal in earlier segments that were read.
    pub(in crate::db) before: u64,
    /// A sentence for each thing worth telling a person.
    pub(in crate::db) findings: Vec<String>,
    /// The commit that doesn't apply, if there is one: the replayed state ends before it.
    pub(in crate::db) unapplied: Option<Unapplied>,
}

/// The replayed state, over a root of the image or from the beginning.
#[derive(Debug)]
pub(in crate::db) struct Replayed {
    pub(in crate::db) store: Store,
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) point: Point,
    /// The root's end in bytes of the journal; 0: there is none.
    pub(in crate::db) began: u64,
}

impl Reading {
    /// Opens a journal that others may be writing.
    ///
    /// # Errors
    /// Those of surveying all of the journal. A problem of the image isn't an error here.
    pub(in crate::db) fn open(
        directory: Arc<dyn Directory>,
        name: &str,
        watched: &Watched<'_>,
        options: &Options,
    ) -> Result<(Self, Beginning)> {
        let (damage, budget) = (Arc::<Damage>::default(), options.budget());
        let looking = Looking {
            damage: Some(&damage),
            is_whole: options.verify_image,
            ..Looking::to_read(&directory, name, watched, budget)
        };
        let mut found = looking.find()?;
        let (survey, replayed) = match options.hard_only {
            true => hard(&looking, &mut found, watched)?,
            false => all(&looking, &mut found, watched)?,
        };
        let Found { identity, before, notes: mut findings, stopped, .. } = found;
        let shown = directory.display(name);
        findings.extend(stopped.iter().map(|stopped| stopped.unapplied.explain(&shown)));
        let unapplied = stopped.map(|stopped| stopped.unapplied);
        let name = name.to_owned();
        damage.end_opening(damage.count());
        let reading = Self { directory, name, budget, damage };
        Ok((reading, Beginning { survey, replayed, identity, before, findings, unapplied }))
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
    pub(in crate::db) fn reopen(&self, file: &JournalFile, point: Point) -> Option<Replayed> {
        let noted = self.damage.begin_opening();
        match self.reopened(file, point) {
            Ok(replayed) => {
                self.damage.end_opening(noted);
                Some(replayed)
            }
            Err(error) => {
                self.damage.report(not_opened_again(&error));
                None
            }
        }
    }

    fn reopened(&self, file: &JournalFile, point: Point) -> Result<Replayed> {
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
            _ => {
                let (replay, end) = looking.replay_all(point.position, None)?;
                (exactly(replay, end, point)?, 0)
            }
        };
        let view = Arc::clone(store.published());
        Ok(Replayed { store, view, point, began })
    }

    /// Starts again from the newest root of the image, up to `to`, if that has advanced far enough since `began`. A
    /// failure isn't an error: the reader continues unchanged.
    pub(in crate::db) fn restart_from_root(
        &self,
        file: &JournalFile,
        began: u64,
        identity: Identity,
        to: u64,
        end: Point,
    ) -> Option<Replayed> {
        let reached = file.reach(to);
        if !is_worth_it(began, reached, reached) {
            return None; // and nothing is read
        }
        let Self { directory, name, budget, damage, .. } = self;
        let worth = |root: &Root| {
            root.segment == file.segment
                && is_worth_it(began, file.reach(root.point.position), reached)
        };
        Image::peek(&**directory, &image_name(name), &identity).filter(worth)?;
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
        let (replay, point) = looking.replay_to(begun, to).ok()?;
        let replayed = replayed(replay, point, file.reach(from.position));
        (replayed.point.position < end.position || replayed.point == end).then_some(replayed)
    }
}

/// Replays all accepted frames.
fn all(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Survey, Replayed)> {
    let (survey, replay, _) = looking.survey(found, watched, Recovery::Checked, is_damaged)?;
    if is_damaged(&survey) {
        return Err(survey.damage(&looking.directory.display(looking.name)));
    }
    let began = found.begun.as_ref().filter(|_| found.stopped.is_none()).map_or(0, reached);
    let end = found.stopped.as_ref().map_or(survey.end, |stopped: &Before| stopped.point);
    let replayed = replayed(replay, end, began);
    Ok((survey, replayed))
}

/// Returns the part known to be on permanent storage.
fn hard(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Survey, Replayed)> {
    let shown = looking.directory.display(looking.name);
    if let Some(begun) = &found.begun {
        let from = begun.past.point();
        let rule = Rule::new(Recovery::Checked).after(from);
        let survey = survey(watched, &shown, rule, || Ok(()), is_damaged, |(), _, _| Ok(()));
        let least = from.map_or(0, |from| from.position);
        let survey = survey.ok().map(|(survey, ())| survey);
        let is_fit = |survey: &Survey| !is_damaged(survey) && least <= hard_position(survey);
        if let Some(survey) = survey.filter(is_fit)
            && let Ok((replay, point)) = looking.replay_to(begun, hard_position(&survey))
        {
            found.before = begun.past.bytes();
            looking.check_end(found, &survey)?;
            return Ok((survey, replayed(replay, point, reached(begun))));
        }
        // Only the whole journal shows which of the two is wrong.
        found.begun = None;
    }
    let (survey, ()) = survey_moving(watched, &shown, || Ok(()), |(), _, _| Ok(()))?;
    looking.check_end(found, &survey)?;
    let (replay, end, stopped) = looking.replay_counted(&survey, hard_position(&survey))?;
    found.stopped = stopped;
    Ok((survey, replayed(replay, end, 0)))
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

fn replayed(replay: Replay, point: Point, began: u64) -> Replayed {
    let (store, view) = replay.finish();
    Replayed { store, view, point, began }
}

/// True if a store that began at `from` should start again from a root at `newest` to reach `end`: less must be
/// replayed again than the image has advanced.
pub(in crate::db) const fn is_worth_it(from: u64, newest: u64, end: u64) -> bool {
    let forward = newest.saturating_sub(from);
    newest <= end && forward >= WORTH_IT && forward >= end - newest
}
