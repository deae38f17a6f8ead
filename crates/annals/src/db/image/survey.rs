//! Surveying a journal from the image's point on, or all of it.

use std::sync::Arc;

use super::imager::Imager;
use super::opening::{Found, Looking, over, stale};
use super::witness::{check_end, known};
use crate::db::past::Past;
use crate::db::progress::Watched;
use crate::db::scan::{self, Replay};
use crate::journal::{Recovery, Rule, Survey, Verdict};
use crate::{ErrorKind, Result};

impl Looking<'_> {
    /// Surveys the journal, and gives the store: from the image's point on, or from the last segment that
    /// begins with the state if there is none, or if the journal turns out not to go on from there.
    ///
    /// # Errors
    /// Those of the survey of the whole journal.
    pub(in crate::db) fn survey(
        &self,
        found: &mut Found,
        storage: &Watched<'_>,
        recovery: Recovery,
        looks_wrong: impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, Replay, Option<Arc<Imager>>)> {
        // What they prove isn't taken back, whatever the recovery.
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
    ) -> Result<(Survey, Replay, Option<Arc<Imager>>)> {
        let mut reason = None;
        while let Some(begun) = &found.begun {
            let imager = self.imager(found);
            let begin = || over(begun.resume(), imager.as_ref());
            match self.survey_behind(&begun.past, begin, storage, rule, &looks_wrong) {
                Ok((survey, replay)) if survey.verdict() != Verdict::Damaged => {
                    found.before = begun.past.bytes();
                    self.check_end(found, &survey)?;
                    return Ok((survey, replay, imager));
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
                // An older root may do: this one reaches what is known to be damaged by now.
                Err(error) if error.kind() == ErrorKind::PageLost => {
                    storage.read_again();
                    let again = self.find()?;
                    found.notes.extend(again.notes);
                    (found.begun, found.pins) = (again.begun, again.pins);
                    found.reason = again.reason.or(Some(error.to_string()));
                    continue;
                }
                // What it says would be wrong of a journal that is whole.
                Ok(_) | Err(_) => reason = Some(stale(&begun.image, &begun.root).to_string()),
            }
            storage.read_again();
            break;
        }
        let past = Past::needed(&**self.directory, self.name, &found.head.header)?;
        // What is spilled goes to a new image, in the place of one that may still be needed.
        if found.is_doubtful {
            reason = found.reason.take();
        }
        let imager = if reason.is_none() { self.imager(found) } else { None };
        let begin = || over(Replay::default(), imager.as_ref());
        let all = self.survey_behind(&past, begin, storage, rule, &looks_wrong)?;
        found.before = past.bytes();
        self.check_end(found, &all.0)?;
        // Whether that is the journal's fault or the image's, only all of the journal can tell.
        if let Some(reason) = reason.filter(|_| all.0.verdict() != Verdict::Damaged) {
            self.set_aside(found, reason);
        }
        let (survey, replay) = all;
        Ok((survey, replay, imager.or_else(|| self.imager(found))))
    }

    /// Refuses a journal that ends before what the image proves.
    pub(super) fn check_end(&self, found: &Found, survey: &Survey) -> Result<()> {
        check_end(&found.witnesses, survey, &self.directory.display(self.name))
    }

    /// Surveys the journal's file, with what `begin` makes and the segments before it replayed.
    fn survey_behind(
        &self,
        past: &Past,
        begin: impl Fn() -> Replay,
        storage: &Watched<'_>,
        rule: Rule,
        looks_wrong: &impl Fn(&Survey) -> bool,
    ) -> Result<(Survey, Replay)> {
        let shown = self.directory.display(self.name);
        let begin = || {
            let mut replay = begin();
            past.replay(&mut replay, storage.watch()).map(|()| replay)
        };
        scan::survey(
            storage,
            &shown,
            rule.after(past.point()),
            begin,
            looks_wrong,
            |replay, frame, end| past.replay_frame(replay, (frame, end), &shown),
        )
    }
}
