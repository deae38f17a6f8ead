//! Opening the state of a journal: from the image's point on, or from the beginning.

use std::sync::Arc;

use annals_schema::Txid;

use crate::db::follow::image_state::ImageState;
use crate::db::follow::opening::{OpenRequest, OpenedImage, OpenedRoot, stale};
use crate::db::follow::options::Options;
use crate::db::follow::segments::Past;
use crate::db::follow::source::{FrameSource, is_damaged};
use crate::db::follow::state::{Replay, State};
use crate::db::follow::unapplied::{Before, Counted, MakeRoom, replay_before};
use crate::db::follow::witness::{check_end, known};
use crate::db::present::image_use::ImageUse;
use crate::db::present::segment::JournalFile;
use crate::db::progress::{Watch, Watched};
use crate::journal::{Recovery, Rule, Survey};
use crate::storage::{Directory, Storage};
use crate::store::View;
use crate::trace::event;
use crate::{ErrorKind, Result};

impl OpenRequest<'_> {
    /// Surveys the journal, and returns the state: from the image's point on. If there is no image, or the journal
    /// doesn't continue from that point, it begins with the last segment that begins with the state.
    ///
    /// # Errors
    /// Those of the survey of the whole journal.
    pub(in crate::db) fn open(
        &self,
        found: &mut OpenedImage,
        storage: &Watched<'_>,
        recovery: Recovery,
        looks_wrong: impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, State, Option<Arc<ImageState>>)> {
        // No recovery cuts the history that they prove.
        let known = known(&found.witnesses, &**self.storage, &found.head)?;
        let rule = Rule::new(recovery).knowing(known);
        let shown = &self.directory.display(self.name);
        let mut reason = None;
        while let Some(begun) = &found.begun {
            let image_state = self.image_state(found);
            let begin = || over(begun.resume(), image_state.as_ref());
            let source = FrameSource { past: Some(&begun.past), storage, shown };
            match self.follow(found, source, rule, begin, &looks_wrong) {
                // Only the whole journal shows whether a commit doesn't apply.
                Ok((survey, state, None)) if !is_damaged(&survey) => {
                    self.check_end(found, &survey)?;
                    found.notes.append(&mut found.damage.take_findings());
                    return Ok((survey, state, image_state));
                }
                Err(error) if error.kind() == ErrorKind::Cancelled || error.is_remote() => {
                    return Err(error);
                }
                // An older root may be usable: damage of this one is known by now.
                Err(error) if error.kind() == ErrorKind::PageLost => {
                    storage.read_again();
                    let again = self.find()?;
                    found.notes.extend(again.notes);
                    (found.begun, found.pins) = (again.begun, again.pins);
                    found.reason = again.reason.or(Some(error.to_string()));
                    continue;
                }
                // For a whole journal its result would be wrong.
                Ok(_) | Err(_) => reason = Some(stale(&begun.image, &begun.root).to_string()),
            }
            storage.read_again();
            break;
        }
        // Spilled pages are written to a new image, which replaces one that may still be needed.
        if found.is_doubtful {
            reason = found.reason.take();
        }
        let image_state = if reason.is_none() { self.image_state(found) } else { None };
        let begin = || over(Replay::default(), image_state.as_ref());
        let past = Past::needed(&**self.directory, self.name, &found.head.header)?;
        let source = FrameSource { past: Some(&past), storage, shown };
        let (survey, state, stopped) = self.follow(found, source, rule, begin, &looks_wrong)?;
        self.check_end(found, &survey)?;
        found.stopped = stopped;
        // Only the whole journal shows whether it or the image is wrong.
        let is_sound = !is_damaged(&survey) && found.stopped.is_none();
        if let Some(reason) = reason.filter(|_| is_sound) {
            self.set_aside(found, reason);
        }
        found.notes.append(&mut found.damage.take_findings());
        Ok((survey, state, image_state.or_else(|| self.image_state(found))))
    }

    /// Refuses a journal that ends before a point that the image proves: no other beginning changes that.
    fn check_end(&self, found: &OpenedImage, survey: &Survey) -> Result<()> {
        check_end(&found.witnesses, survey, &**self.directory, self.name, &**self.storage)
    }

    /// Returns the state of the image from now on; `None` if there can be none.
    pub(in crate::db) fn image_state(&self, found: &OpenedImage) -> Option<Arc<ImageState>> {
        (!self.storage.has_fixed_len()).then(|| Arc::new(ImageState::new(self, found)))
    }

    /// Follows the journal from some segment on, and in its file as far as a survey accepts it, or as it is known to be
    /// on permanent storage; or to the commit before one that doesn't apply, which is returned, unless there is damage.
    fn follow(
        &self,
        found: &OpenedImage,
        source: FrameSource<'_>,
        rule: Rule,
        begin: impl Fn() -> Replay,
        looks_wrong: &impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, State, Option<Before>)> {
        let from = source.past.and_then(Past::point);
        let (survey, replay, point) = replay_before(|until| {
            let begin = || begin().until(until);
            if !self.hard_only {
                let surveyed = source.survey(rule, looks_wrong, begin);
                let (survey, replay) = surveyed.inspect_err(|_| source.storage.read_again())?;
                let end = survey.end;
                return Ok((survey, replay, end));
            }
            let file = FrameSource { past: None, ..source };
            let (survey, ()) = file.survey(rule.after(from), looks_wrong, || ())?;
            // It is read once more, and somebody may want to stop that.
            source.storage.read_again();
            let mut replay = begin();
            let end = replay.advance(&source, &survey.head, hard_position(&survey))?;
            Ok((survey, replay, end))
        })?;
        let (shown, &Survey { ref head, end, hard, .. }) = (source.shown, &survey);
        let stopped = match is_damaged(&survey) {
            true => None,
            false => replay.before(&Counted { head, from, shown, end, hard })?,
        };
        let (storage, directory) = (Arc::clone(self.storage), Arc::clone(self.directory));
        let file = JournalFile::new(storage, head.header.segment, directory, self.name)
            .behind(source.past.map_or(0, Past::bytes))
            .using(ImageUse::new(&found.damage, self.roots_until))
            .knowing(head.clone());
        let point = stopped.as_ref().map_or(point, |stopped| stopped.point);
        let state = State { store: replay.finish(), point, file: Arc::new(file) };
        Ok((survey, state, stopped))
    }
}

/// What an opening for reading makes of the image of a journal.
#[derive(Debug)]
pub struct FromImage {
    /// The state that it leads to; `None` if there is no image, or it can't be used at all.
    pub begun: Option<BegunFromImage>,
    /// The reason that an existing image isn't used.
    pub reason: Option<String>,
}

/// A state that an opening began with a root of the image.
#[derive(Debug)]
pub struct BegunFromImage {
    /// The last transaction of the root.
    pub root: Txid,
    /// False if the journal doesn't continue from the root, and was replayed instead.
    pub is_used: bool,
    /// False if a commit doesn't apply: the state is the one before it.
    pub is_whole: bool,
    /// The findings in the journal.
    pub survey: Survey,
    /// The state at its end.
    pub view: Arc<View>,
}

/// Opens a journal as for reading, with the image beside it, and writes nothing.
///
/// # Errors
/// As [`Options::open_read_only`]. That the image can't be used is part of the answer.
pub fn open_from_image(
    options: &Options,
    directory: &Arc<dyn Directory>,
    name: &str,
    storage: &Arc<dyn Storage>,
    watch: Option<&Watch>,
) -> Result<FromImage> {
    let request = OpenRequest::to_read(directory, name, storage, options.budget());
    let mut found = request.find()?;
    let mut begun = None;
    if let Some(OpenedRoot { root, .. }) = &found.begun {
        let root = root.point.txid;
        let watched = Watched::new(&**storage, watch);
        let opened = request.open(&mut found, &watched, Recovery::Checked, is_damaged);
        let (survey, state, _) =
            opened.map_err(|error| watched.explain(error, &directory.display(name)))?;
        let (is_used, is_whole) = (found.begun.is_some(), found.stopped.is_none());
        let view = Arc::clone(state.store.published());
        begun = Some(BegunFromImage { root, is_used, is_whole, survey, view });
    }
    Ok(FromImage { begun, reason: found.reason })
}

/// Records that a check found the image damaged.
pub fn warn_of_image(problem: &str) {
    event!(WARN, "a check found damage of the image", problem = problem);
}

/// Allows writing changes larger than memory to the image, if there can be one.
pub(in crate::db) fn over(replay: Replay, image_state: Option<&Arc<ImageState>>) -> Replay {
    match image_state {
        Some(image_state) => replay.spilling(Arc::clone(image_state) as Arc<dyn MakeRoom>),
        None => replay,
    }
}

/// Returns the end of the journal that is known to be on permanent storage, also according to its writers.
pub(in crate::db) fn hard_position(survey: &Survey) -> u64 {
    let told = survey.head.live.filter(|live| !live.suspect).map_or(0, |live| live.hard);
    survey.hard.max(told).min(survey.end.position)
}
