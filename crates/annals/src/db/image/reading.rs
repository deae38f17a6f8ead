//! Readers that begin with the image: those that never write, and take no lock but the pin of their root.

use std::sync::Arc;

use super::opening::{Begun, Found, Looking};
use super::shared::is_worth_it;
use crate::db::progress::Watched;
use crate::db::scan::{is_damaged, survey_from, survey_moving};
use crate::db::shared::replay_between;
use crate::image::{Identity, Image, Root};
use crate::journal::{Point, Recovery, Survey};
use crate::storage::{Access, Directory, Storage, SystemClock};
use crate::store::{Store, View};
use crate::{Error, Result};

/// Where a reader looks for the image.
#[derive(Debug)]
pub(in crate::db) struct Reading {
    directory: Arc<dyn Directory>,
    /// The name of the journal.
    name: String,
    budget: u64,
    /// The name of the image, and which journal it would belong to.
    image: (String, Identity),
}

/// What a reader begins with.
#[derive(Debug)]
pub(in crate::db) struct Beginning {
    pub(in crate::db) survey: Survey,
    pub(in crate::db) replayed: Replayed,
    /// A sentence for each thing worth telling a person.
    pub(in crate::db) findings: Vec<String>,
}

/// What was replayed, over a root of the image or from the beginning.
#[derive(Debug)]
pub(in crate::db) struct Replayed {
    pub(in crate::db) store: Store,
    pub(in crate::db) view: Arc<View>,
    pub(in crate::db) point: Point,
    /// The position in the journal that the root stands for; 0: there is none.
    pub(in crate::db) began: u64,
}

impl Reading {
    /// Opens a journal that others may be writing.
    ///
    /// # Errors
    /// Those of surveying all of the journal. What is wrong with the image is none.
    pub(in crate::db) fn open(
        (directory, name): (Arc<dyn Directory>, &str),
        watched: &Watched<'_>,
        (budget, hard_only): (u64, bool),
    ) -> Result<(Self, Beginning)> {
        let looking = Looking {
            directory: &directory,
            name,
            storage: watched,
            access: Access::Read,
            clock: Arc::new(SystemClock),
            budget,
            spills: false,
        };
        let mut found = looking.find()?;
        let (survey, replayed) = match hard_only {
            true => hard(&looking, &mut found, watched)?,
            false => all(&looking, &mut found, watched)?,
        };
        let Found { name: image, identity, notes: findings, .. } = found;
        let name = name.to_owned();
        let reading = Self { directory, name, budget, image: (image, identity) };
        Ok((reading, Beginning { survey, replayed, findings }))
    }

    /// Begins anew from the newest root of the image, up to `to`, if it has come forward so much since
    /// `began` that it is worth it. What goes wrong is no error: the reader goes on as it is.
    pub(in crate::db) fn begin_anew(
        &self,
        storage: &dyn Storage,
        began: u64,
        (to, end): (u64, Point),
    ) -> Option<Replayed> {
        let (image, identity) = &self.image;
        if !is_worth_it(began, to, to) {
            return None; // and nothing is read
        }
        let worth = |root: &Root| is_worth_it(began, root.point.position, to);
        Image::peek(&*self.directory, image, identity).filter(worth)?;
        let Self { directory, name, budget, .. } = self;
        let access = Access::Read;
        let (clock, budget, spills) = (Arc::new(SystemClock), *budget, false);
        let looking = Looking { directory, name, storage, access, clock, budget, spills };
        let found = looking.find().ok()?;
        let from = found.begun.as_ref()?.root.point;
        // Its place in the journal is proven by what follows it, or by being the end.
        if from.position > to || (from.position == to && from != end) {
            return None;
        }
        let shown = self.directory.display(name);
        let replayed = replay(&found, storage, to, &shown).ok()?;
        (replayed.point.position < end.position || replayed.point == end).then_some(replayed)
    }
}

/// Gives all that counts.
fn all(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Survey, Replayed)> {
    let (survey, replay, _) = looking.survey(found, watched, Recovery::Checked, is_damaged)?;
    if is_damaged(&survey) {
        return Err(survey.damage(&looking.directory.display(looking.name)));
    }
    let (store, view) = replay.finish();
    let (point, began) = (survey.end, found.begun.as_ref().map_or(0, position));
    Ok((survey, Replayed { store, view, point, began }))
}

/// Gives what is known to be on permanent storage.
fn hard(
    looking: &Looking<'_>,
    found: &mut Found,
    watched: &Watched<'_>,
) -> Result<(Survey, Replayed)> {
    let shown = looking.directory.display(looking.name);
    if let Some(begun) = &found.begun {
        let (from, reached) = (begun.root.point, begun.root.point.position);
        let survey = survey_from(
            watched,
            &shown,
            (Recovery::Checked, Some(from)),
            is_damaged,
            || (),
            |(), _, _| Ok(()),
        );
        match survey {
            Ok((survey, ())) if !is_damaged(&survey) && reached <= hard_position(&survey) => {
                let replayed = replay(found, looking.storage, hard_position(&survey), &shown)?;
                return Ok((survey, replayed));
            }
            // Whose fault that is, only all of the journal can tell.
            _ => found.begun = None,
        }
    }
    let (survey, ()) = survey_moving(watched, &shown, |(), _, _| Ok(()))?;
    let (start, to) = (survey.head.start(), hard_position(&survey));
    let replayed = replay_between(looking.storage, Store::new(), (start, to), &shown);
    let (store, replayed) = replayed;
    let (view, point) = replayed?;
    Ok((survey, Replayed { store, view, point, began: 0 }))
}

/// Gives how far the journal is known to be on permanent storage, by what its writers tell too.
pub(in crate::db) fn hard_position(survey: &Survey) -> u64 {
    let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
    survey.hard.max(told).min(survey.end.position)
}

fn position(begun: &Begun) -> u64 {
    begun.root.point.position
}

/// Replays what follows the root that was found.
fn replay(found: &Found, storage: &dyn Storage, to: u64, shown: &str) -> Result<Replayed> {
    let begun = found.begun.as_ref();
    let Begun { root, view, .. } = begun.ok_or_else(|| Error::corrupt("there is no root"))?;
    let store = Store::resume(view.share());
    let (store, replayed) = replay_between(storage, store, (root.point, to), shown);
    let (view, point) = replayed?;
    Ok(Replayed { store, view, point, began: root.point.position })
}
