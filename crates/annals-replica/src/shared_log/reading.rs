//! From messages to the frames of a history: which messages count.
//!
//! A message counts if it verifies at its place, continues the chain, and holds whole transactions whose clocks aren't ahead of
//! the log's. That their events apply is for the database to say, which gets the frames. All other messages are void, but only
//! if most replicas have the same bytes.
//!
//! Invariants
//! 1. Each sequence is judged, in order; none is left out. A hole is filled from other replicas, or is an error.
//! 2. A message is void because of the cursor only if all before it has been applied: see `is_premature`.
//! 3. `place.read` only grows past messages whose judgement can't change: not past a part whose last one may still come.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use annals::{Cursor, Error, ErrorKind, Result};
use annals_storage::Spool;

use super::copies::{Copies, Found, Whole};
use super::finding::ends_of;
use super::log::{Message, latest};
use super::message::{Head, Kind};
use super::place::Place;
use super::status::Counts;
use crate::connection::BATCH;
use crate::frames::transaction_ends;

/// What was read.
#[derive(Debug)]
pub(super) struct Read {
    /// The cursor after the frames.
    pub(super) next: Cursor,
    /// The places of the cursors after each message that counts, and of the last one.
    pub(super) places: Vec<(Cursor, Place)>,
    /// How many messages count.
    pub(super) counted: u64,
    /// The sequences of the messages that count.
    pub(super) sequences: RangeInclusive<u64>,
    /// The last message, if it is a fence, or a part without its end.
    pub(super) open: Option<u64>,
}

/// The parts of some transactions so far.
struct Partial {
    head: Head,
    /// Where they begin in the spool.
    begin: u64,
}

struct Reading<'r> {
    copies: &'r Copies,
    into: &'r mut Spool,
    begin: u64,
    cursor: Cursor,
    place: Place,
    partial: Option<Partial>,
    /// True if the next message is judged only once it is known that those before apply.
    is_stopped: bool,
    read: Read,
}

/// Reads the frames after a cursor: about 8 MiB, or those of one message that counts if its sequence isn't after
/// `single_to`. If there are none, the log's leader was asked.
pub(super) fn read(
    copies: &Copies,
    after: Cursor,
    place: Place,
    single_to: u64,
    into: &mut Spool,
) -> Result<Read> {
    let (places, sequences) = (Vec::new(), RangeInclusive::new(1, 0));
    let read = Read { next: after, places, counted: 0, sequences, open: None };
    let (cursor, partial, begin) = (after, None, into.end());
    // Parts whose last one wasn't there yet are read again with it.
    let place = Place { tail: place.read, ..place };
    let is_stopped = false;
    let mut reading = Reading { copies, into, begin, cursor, place, partial, is_stopped, read };
    if place.is_inside {
        reading.rest()?;
        return Ok(reading.end());
    }
    // Whoever pulls comes back until there is nothing new.
    while !reading.is_enough(single_to) && reading.batch(single_to)? {}
    Ok(reading.end())
}

impl Reading<'_> {
    fn next(&self) -> u64 {
        self.place.tail + 1
    }

    /// True if there is something to pass on.
    fn is_enough(&self, single_to: u64) -> bool {
        let has_some = self.partial.is_none() && self.read.counted > 0;
        has_some || self.is_full(single_to)
    }

    /// True if nothing more is to be passed on at once.
    fn is_full(&self, single_to: u64) -> bool {
        let has_one = self.read.counted > 0 && self.place.read <= single_to;
        let is_much = has_one || self.into.end() - self.begin >= BATCH;
        self.is_stopped || self.partial.is_none() && is_much
    }

    /// Reads some messages; returns false if there are none.
    fn batch(&mut self, single_to: u64) -> Result<bool> {
        let most = usize::try_from(BATCH).unwrap_or(usize::MAX);
        let messages = self.copies.log.read(self.next(), most)?;
        if messages.is_empty() {
            return self.missed();
        }
        if messages.first().is_some_and(|first| first.sequence == self.next()) {
            self.copies.counts.is_suspicious.store(false, Ordering::Relaxed);
        }
        for message in messages {
            while self.next() < message.sequence && !self.is_full(single_to) {
                let found = self.copies.repair(self.next())?;
                self.judge(found)?;
            }
            if self.is_full(single_to) {
                break;
            }
            if message.sequence == self.next() {
                let found = self.copies.check(&message)?;
                self.judge(found)?;
            }
        }
        Ok(true)
    }

    /// Asks the leader if there is more than a replica has; returns false if there isn't.
    fn missed(&mut self) -> Result<bool> {
        let mut last = self.copies.log.extent()?.last;
        if last < self.place.tail {
            last = self.copies.proven_extent(self.place.tail)?.last;
        }
        if last < self.place.tail {
            let message = format!(
                "{}: ends with message {last}, and message {} was read before: it was created again, or has lost messages",
                self.copies.log.name(),
                self.place.tail
            );
            return Err(Error::new(ErrorKind::Diverged, message));
        }
        if last == self.place.tail {
            return Ok(false);
        }
        let found = self.copies.fetch(self.next())?;
        self.judge(found).map(|()| true)
    }

    /// Judges the next message.
    fn judge(&mut self, found: Found) -> Result<()> {
        let sequence = self.next();
        if let Found::Whole(Whole { head, .. }) = &found
            && self.is_premature(head)
        {
            self.is_stopped = true;
            return Ok(());
        }
        let is_fence = matches!(&found, Found::Whole(it) if it.head.kind == Kind::Fence);
        match found {
            Found::Void => {
                self.drop_parts();
                self.copies.counts.note_void(sequence, "its bytes don't verify".to_owned());
            }
            Found::Whole(whole) => match whole.head.kind {
                Kind::Fence => {
                    self.drop_parts();
                    Counts::add(&self.copies.counts.skipped);
                }
                Kind::Beginning => {
                    self.drop_parts();
                    self.void(&whole.message, "a journal begins once")?;
                }
                Kind::Frames => self.frames(&whole)?,
            },
        }
        self.place.tail = sequence;
        if self.partial.is_none() {
            self.place.read = sequence;
        }
        self.read.open = (is_fence || self.partial.is_some()).then_some(sequence);
        Ok(())
    }

    /// True if a message doesn't continue others that count, if they apply: if they don't, it may count in their place.
    fn is_premature(&self, head: &Head) -> bool {
        let begins = head.kind == Kind::Frames && head.part == 0;
        begins && head.from != self.cursor && self.read.counted > 0
    }

    /// Takes frames, or a part of them.
    fn frames(&mut self, whole: &Whole) -> Result<()> {
        let head = whole.head;
        if head.part == 0 {
            self.drop_parts();
            if head.from != self.cursor {
                let reason = format!(
                    "it follows transaction {}, and the history ends with transaction {}",
                    head.from.txid, self.cursor.txid
                );
                return self.void(&whole.message, &reason);
            }
            self.partial = Some(Partial { head, begin: self.into.end() });
        }
        let Some(partial) = self.partial.as_mut().filter(|it| it.is_continued_by(&head)) else {
            self.drop_parts();
            return self.stray(&whole.message);
        };
        partial.head = head;
        let appended = self.into.append(&whole.payload());
        appended.map_err(|error| Error::io("can't spool what was pulled", error))?;
        if !head.is_last() {
            return Ok(());
        }
        let begin = partial.begin;
        match self.refusal(begin, &whole.message, &head)? {
            Some(reason) => {
                self.drop_parts();
                self.void(&whole.message, &reason)
            }
            None => {
                self.partial = None;
                self.count(&head);
                Ok(())
            }
        }
    }

    /// Counts the message that ends with this part.
    fn count(&mut self, head: &Head) {
        self.cursor = head.end;
        self.read.counted += 1;
        if self.read.counted == 1 {
            self.read.sequences = head.first()..=head.sequence;
        }
        self.read.sequences = *self.read.sequences.start()..=head.sequence;
        self.read.places.push((head.end, Place::after(head.sequence)));
    }

    /// Returns why frames can't be history, as far as that can be said without a database.
    fn refusal(&self, begin: u64, message: &Message, head: &Head) -> Result<Option<String>> {
        let Some(ends) = transaction_ends(self.into, begin)? else {
            return Ok(Some("it doesn't hold whole transactions".to_owned()));
        };
        let count = head.end.txid.0.checked_sub(head.from.txid.0);
        let is_as_said = count == Some(ends.len() as u64)
            && ends.last().is_some_and(|end| end.chain == head.end.chain);
        if !is_as_said {
            return Ok(Some("it doesn't hold the transactions that it says".to_owned()));
        }
        let most = latest(message.time);
        let is_ahead = ends.iter().any(|end| end.clock_time.is_some_and(|time| time > most));
        let reason = "its clock is more than 10 s ahead of that of the log";
        Ok(is_ahead.then(|| reason.to_owned()))
    }

    /// Skips a message for ever, if all that read the log skip it.
    fn void(&mut self, message: &Message, reason: &str) -> Result<()> {
        self.copies.settled(message, reason)?;
        self.copies.counts.note_void(message.sequence, reason.to_owned());
        Ok(())
    }

    /// Skips a part whose first ones aren't before it: all parts are on their way at once, and the message of another node
    /// took the place of one. Nothing is wrong with that, and the node that sent them sends them again.
    fn stray(&mut self, message: &Message) -> Result<()> {
        self.copies.settled(message, "it is a part whose first ones aren't before it")?;
        Counts::add(&self.copies.counts.skipped);
        Ok(())
    }

    /// Drops parts whose last one isn't there.
    fn drop_parts(&mut self) {
        if let Some(Partial { head, begin }) = self.partial.take() {
            self.into.truncate(begin);
            let parts = u64::from(head.part) + 1;
            self.copies.counts.skipped.fetch_add(parts, Ordering::Relaxed);
        }
    }

    /// Passes on the transactions after a cursor that is in the middle of a message.
    fn rest(&mut self) -> Result<()> {
        let first = self.place.read + 1;
        let broken = || Error::corrupt("a message that was there before doesn't verify any more");
        let Found::Whole(whole) = self.copies.fetch(first)? else { return Err(broken()) };
        let last = first + u64::from(whole.head.parts) - 1;
        let Found::Whole(Whole { head, .. }) = self.copies.fetch(last)? else {
            return Err(broken());
        };
        let (frames, ends) = ends_of(self.copies, &head)?;
        let end = ends.iter().find(|end| end.chain == self.cursor.chain).ok_or_else(broken)?;
        let io = |error| Error::io("can't spool what was pulled", error);
        let rest = frames.without(end.position).map_err(io)?;
        rest.pieces(|_, piece| self.into.append(piece)).map_err(io)?;
        self.place = Place::after(last);
        self.count(&head);
        self.read.sequences = first..=last;
        Ok(())
    }

    fn end(mut self) -> Read {
        if let Some(Partial { begin, .. }) = self.partial {
            self.into.truncate(begin);
        }
        self.copies.counts.read.fetch_max(self.place.read, Ordering::Relaxed);
        self.read.next = self.cursor;
        self.read.places.push((self.cursor, self.place));
        self.read
    }
}

impl Partial {
    fn is_continued_by(&self, next: &Head) -> bool {
        let Head { from, end, parts, part, sequence, .. } = self.head;
        let is_first = next.part == 0 && next.sequence == sequence;
        let is_next = next.part == part + 1 && next.sequence == sequence + 1;
        (is_first || is_next) && (next.from, next.end, next.parts) == (from, end, parts)
    }
}
