//! Surveying a journal from the image's point on, or all of it.

use std::sync::Arc;

use crate::db::image::image_state::ImageState;
use crate::db::image::opening::{Found, Looking, over, stale};
use crate::db::progress::Watched;
use crate::db::replay::segments::Past;
use crate::db::replay::source::FrameSource;
use crate::db::replay::state::Replay;
use crate::db::replay::unapplied::{Before, Counted, replay_before};
use crate::db::replay::witness::{check_end, known};
use crate::journal::{Point, Recovery, Rule, Survey, Verdict};
use crate::{ErrorKind, Result};

impl Looking<'_> {
    /// Surveys the journal, and returns the store: from the image's point on. If there is no image, or the journal
    /// doesn't continue from that point, it begins with the last segment that begins with the state.
    ///
    /// # Errors
    /// Those of the survey of the whole journal.
    pub(in crate::db) fn survey(
        &self,
        found: &mut Found,
        storage: &Watched<'_>,
        recovery: Recovery,
        looks_wrong: impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, Replay, Option<Arc<ImageState>>)> {
        // No recovery cuts the history that they prove.
        let known = known(&found.witnesses, self.storage, &found.head)?;
        let rule = Rule::new(recovery).knowing(known);
        let all = self.survey_found(found, storage, rule, looks_wrong);
        found.notes.append(&mut found.damage.take_findings());
        all
    }

    fn survey_found(
        &self,
        found: &mut Found,
        storage: &Watched<'_>,
        rule: Rule,
        looks_wrong: impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, Replay, Option<Arc<ImageState>>)> {
        let mut reason = None;
        while let Some(begun) = &found.begun {
            let image_state = self.image_state(found);
            let begin = || over(begun.resume(), image_state.as_ref());
            match self.survey_behind(&begun.past, begin, storage, rule, &looks_wrong) {
                // Only the whole journal shows whether a commit doesn't apply.
                Ok((survey, replay))
                    if survey.verdict() != Verdict::Damaged
                        && matches!(
                            self.stopped(&survey, begun.past.point(), &replay),
                            Ok(None)
                        ) =>
                {
                    found.before = begun.past.bytes();
                    self.check_end(found, &survey)?;
                    return Ok((survey, replay, image_state));
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
        let past = Past::needed(&**self.directory, self.name, &found.head.header)?;
        // Spilled pages are written to a new image, which replaces one that may still be needed.
        if found.is_doubtful {
            reason = found.reason.take();
        }
        let image_state = if reason.is_none() { self.image_state(found) } else { None };
        let begin = || over(Replay::default(), image_state.as_ref());
        let all = self.survey_behind(&past, begin, storage, rule, &looks_wrong)?;
        found.before = past.bytes();
        let (survey, replay) = all;
        self.check_end(found, &survey)?;
        if survey.verdict() != Verdict::Damaged {
            found.stopped = self.stopped(&survey, past.point(), &replay)?;
        }
        // Only the whole journal shows whether it or the image is wrong.
        let is_sound = survey.verdict() != Verdict::Damaged && found.stopped.is_none();
        if let Some(reason) = reason.filter(|_| is_sound) {
            self.set_aside(found, reason);
        }
        Ok((survey, replay, image_state.or_else(|| self.image_state(found))))
    }

    /// Refuses a journal that ends before a point that the image proves.
    pub(in crate::db) fn check_end(&self, found: &Found, survey: &Survey) -> Result<()> {
        check_end(&found.witnesses, survey, &**self.directory, self.name, self.storage)
    }

    /// Returns the state before a commit that doesn't apply, if the replay met one that is accepted.
    pub(super) fn stopped(
        &self,
        survey: &Survey,
        from: Option<Point>,
        replay: &Replay,
    ) -> Result<Option<Before>> {
        let shown = &self.directory.display(self.name);
        let &Survey { ref head, end, hard, .. } = survey;
        replay.before(&Counted { head, from, shown, end, hard })
    }

    /// Replays the segments before the journal's file, and then the file, which is surveyed.
    fn survey_behind(
        &self,
        past: &Past,
        begin: impl Fn() -> Replay,
        storage: &Watched<'_>,
        rule: Rule,
        looks_wrong: &impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, Replay)> {
        let shown = &self.directory.display(self.name);
        let source = FrameSource { past: Some(past), storage, shown };
        replay_before(|until| {
            let surveyed = source.survey(rule, looks_wrong, || begin().until(until));
            surveyed.inspect_err(|_| storage.read_again())
        })
    }
}
