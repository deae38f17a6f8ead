//! The history index up to a published state: that of the image, and what was committed since.
//!
//! What was committed since is read once, at the first question, and kept with the file: the next question, and the
//! next backfill, go on from there.

use std::sync::Arc;

use super::about::{About, damaged};
use super::collect::Collector;
use super::schema::schema_of;
use crate::Result;
use crate::db::history::files::Files;
use crate::db::present::segment::Noted;
use crate::db::present::snapshot::Published;
use crate::db::replay::segments::Since;
use crate::journal::lock;
use crate::store::history::{Entry, HistoryIndex};

/// So many entries are collected before they are added: some dozens of MiB of memory.
const MOST_ENTRIES: usize = 1 << 20;

/// How much is read at once.
const STEP: u64 = 1 << 20;

/// An index, and how far it goes.
#[derive(Clone, Debug)]
pub(in crate::db) struct Current {
    pub(in crate::db) index: Arc<HistoryIndex>,
    pub(in crate::db) about: About,
}

impl Current {
    /// Takes an index that is there.
    fn of(index: &Arc<HistoryIndex>) -> Result<Option<Self>> {
        if index.is_missing() {
            return Ok(None);
        }
        Ok(Some(Self { index: Arc::clone(index), about: About::decode(index.about())? }))
    }

    /// Returns how many bytes of the present segment are after the index in the image.
    pub(in crate::db) fn lag(published: &Published) -> u64 {
        let end = published.point.position;
        let there = Self::of(published.view.history_index()).ok().flatten();
        let same = there.filter(|it| it.about.end.segment == published.file.segment);
        same.map_or(end, |it| end.saturating_sub(it.about.end.point.position))
    }

    /// True if it goes farther in the journal.
    fn is_after(&self, other: &Self) -> bool {
        let place = |since: &Since| (since.segment, since.point.position);
        place(&self.about.end) > place(&other.about.end)
    }

    /// Returns the index of the whole kept history up to the end of some files, or farther. What is added to the one
    /// there is noted for the next question.
    ///
    /// Cost: reading the journal after the index there.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`, `Io`.
    pub(in crate::db) fn up_to(files: &Files, published: &Published) -> Result<Self> {
        let there = published.view.history_index();
        // One that was noted over another root is of no use: its nodes aren't in this one.
        let noted = lock(&files.file.index).clone().filter(|noted| noted.index.is_over(there));
        let is_instead =
            noted.as_ref().is_some_and(|noted| noted.instead_of(published.view.root()));
        let known = noted.map(|noted| Self::of(&noted.index)).transpose()?.flatten();
        let stored = if is_instead { None } else { Self::of(there)? };
        let newest = match (known, stored) {
            (Some(known), Some(stored)) if !known.is_after(&stored) => Some(stored),
            (known, stored) => known.or(stored),
        };
        let first = files.first();
        let goes_on = |it: &Self| {
            let start = it.about.parts.first().map_or(it.about.end.segment, |part| part.segment);
            start <= first.segment && it.about.end.segment >= first.segment
        };
        let mut current = match newest.filter(goes_on) {
            Some(current) => current,
            None => Self { index: Arc::default(), about: About::beginning(first) },
        };
        if current.extend(files, published)? {
            let instead_of = is_instead.then(|| published.view.root());
            current.note(files, instead_of);
        }
        Ok(current)
    }

    fn note(&self, files: &Files, instead_of: Option<u64>) {
        let index = Arc::clone(&self.index);
        *lock(&files.file.index) = Some(Noted { index, instead_of });
    }

    /// Adds what follows it in some files; returns true if that was anything.
    pub(super) fn extend(&mut self, files: &Files, published: &Published) -> Result<bool> {
        let end = Since { segment: files.segment(), point: files.end };
        let from = self.about.end;
        if (from.segment, from.point.position) >= (end.segment, end.point.position) {
            return Ok(false);
        }
        let schema = schema_of(published.view.schema(), self.about.commands)?;
        let mut collector = Collector::new(self.about.clone(), schema);
        let mut next = Some(from);
        while let Some(since) = next {
            next = files.read(since, STEP, &mut |seen| collector.frame(seen))?;
            if collector.entries.len() >= MOST_ENTRIES && collector.may_end() {
                let entries = std::mem::take(&mut collector.entries);
                self.add(entries, &collector.about)?;
            }
        }
        collector.end_mark();
        if !collector.may_end() {
            return Err(damaged());
        }
        collector.about.end = end;
        self.add(std::mem::take(&mut collector.entries), &collector.about)?;
        self.about = collector.about;
        Ok(true)
    }

    fn add(&mut self, entries: Vec<Entry>, about: &About) -> Result<()> {
        Arc::make_mut(&mut self.index).add(entries, about.encode())
    }

    /// True if it ends where some files end.
    pub(in crate::db) fn is_of(&self, files: &Files) -> bool {
        self.about.end == Since { segment: files.segment(), point: files.end }
    }

    /// Returns the index of the kept history, made from the journal alone.
    ///
    /// # Errors
    /// As [`Self::up_to`].
    pub(in crate::db) fn made_of(files: &Files, published: &Published) -> Result<Self> {
        let mut made = Self { index: Arc::default(), about: About::beginning(files.first()) };
        made.extend(files, published)?;
        Ok(made)
    }

    /// Does what [`made_of`](Self::made_of) does, and notes it instead of the one in the image.
    ///
    /// # Errors
    /// As [`Self::up_to`].
    pub(in crate::db) fn anew(files: &Files, published: &Published) -> Result<Self> {
        let made = Self::made_of(files, published)?;
        made.note(files, Some(published.view.root()));
        Ok(made)
    }

    /// Returns the index of the kept history alone, if much of it is of history that was forgotten.
    pub(in crate::db) fn without_forgotten(self, first: u64) -> Result<Self> {
        let place = self.about.parts.iter().position(|part| part.segment >= first);
        let Some(part) = place.and_then(|place| self.about.parts.get(place)) else {
            return Ok(self);
        };
        let gone = part.base;
        let all = self.about.parts.last().map_or(0, |last| last.base + last.end);
        if gone == 0 || gone < all - gone {
            return Ok(self);
        }
        let mut about = self.about;
        about.parts.retain(|part| part.segment >= first);
        let index = super::kept::filtered(&self.index, gone / 8, about.encode())?;
        Ok(Self { index: Arc::new(index), about })
    }
}
