//! What became of something that was sent to another side: the one rule for all that is sent.
//!
//! An answer proves only success. A leader that was replaced refuses what its successor stores, a proxy repeats a request
//! or gives it up, a connection ends before the answer. So after any answer but success, the place is looked at that the
//! attempt would have there, and only that decides:
//!
//! ```text
//! send ── success ──────────────► done
//!   ├──── not sent, ever ───────► not sent: something else may be tried
//!   └──── anything else ► look ─► mine:      done
//!                                 another's: conflict, for ever: only now may something else be tried
//!                                 nothing:   send again what is harmless twice; after the deadline: unknown
//!                                 not seen:  look again
//! ```

use std::time::Duration;

use annals::{Error, ErrorKind, Result};
use annals_storage::{Clock as _, SystemClock};

/// The longest pause between two tries.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How a replica behaves where others write, too, and where the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long a transaction runs again after conflicts, and how long its outcome is asked for.
    pub deadline: Duration,
    /// The first pause after a broken connection; each further one is twice as long, up to 5 s.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(30), pause: Duration::from_millis(20) }
    }
}

impl Patience {
    /// Does something until the other side can be reached, or the deadline is over since `begun`: while a log elects a leader,
    /// and while a server begins, there is no answer.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn until_reached<T>(
        self,
        begun: Duration,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        let mut tries = Tries::since(begun, self, LONGEST_PAUSE);
        loop {
            match work() {
                Err(error) if error.kind() == ErrorKind::Unreachable && tries.again() => {}
                done => return done,
            }
        }
    }
}

/// Something that is sent, with a place of its own on the other side, so that it is there once or never.
pub(crate) trait Attempt {
    /// What success is.
    type Done;
    /// What is known of another that has the place.
    type Other;

    /// Sends it, or sends something again that is harmless twice.
    fn send(&mut self) -> Answer<Self::Done>;

    /// Looks at its place.
    ///
    /// # Errors
    /// The place can't be seen.
    fn look(&mut self) -> Result<Seen<Self::Done, Self::Other>>;

    /// True if a refusal ends by itself, and is waited for. Sent as it is, not made anew: a copy may still be on its way.
    fn is_passing(&self, _refusal: &Error) -> bool {
        false
    }

    /// Returns the error that its outcome isn't known, by what was heard last.
    fn unknown(&self, heard: &Error) -> Error;
}

/// What is heard of an attempt.
#[derive(Debug)]
pub(crate) enum Answer<D> {
    /// It is there.
    Done(D),
    /// It was not sent.
    NotSent(Error),
    /// Somebody says that it was judged, and that nothing was changed.
    Refused(Error),
    /// Anything else.
    Unproven(Error),
}

/// What is seen at the place of an attempt.
#[derive(Debug)]
pub(crate) enum Seen<D, O> {
    Mine(D),
    Another(O),
    Nothing,
}

/// What became of an attempt.
#[derive(Debug)]
pub(crate) enum Settled<D, O> {
    /// It is there.
    Done(D),
    /// Another has its place: it isn't there, and never will be.
    Conflict(O),
    /// No copy of it was sent: it isn't there, and never will be. It is a `Conflict` if it is another's turn to send.
    NotSent(Error),
}

/// Sends an attempt until it is known what became of it.
///
/// # Errors
/// It is certain that it isn't there: a refusal, after which its place is empty. `UnknownOutcome`: the deadline is over.
pub(crate) fn settle<A: Attempt>(
    attempt: &mut A,
    tries: &mut Tries,
) -> Result<Settled<A::Done, A::Other>> {
    // True if a copy of it may still be on its way.
    let mut is_loose = false;
    loop {
        let (heard, is_refusal) = match attempt.send() {
            Answer::Done(done) => return Ok(Settled::Done(done)),
            Answer::NotSent(error) if !is_loose => {
                // What is to be sent in another's turn may be made anew: whoever has it knows.
                if error.kind() == ErrorKind::Conflict || !tries.again() {
                    return Ok(Settled::NotSent(error));
                }
                continue;
            }
            Answer::Refused(error) => (error, true),
            Answer::NotSent(error) | Answer::Unproven(error) => (error, false),
        };
        let is_certain = is_refusal && (!is_loose || is_judgement(&heard));
        let is_last = is_certain && (!attempt.is_passing(&heard) || tries.are_over());
        is_loose |= !is_refusal;
        let mut is_seen = false;
        // Nothing is sent again before its place was seen.
        while !is_seen {
            is_seen = match attempt.look() {
                Ok(Seen::Mine(done)) => return Ok(Settled::Done(done)),
                Ok(Seen::Another(other)) => return Ok(Settled::Conflict(other)),
                Ok(Seen::Nothing) if is_last => return Err(heard),
                // Who refuses it may refuse to be asked, too.
                Err(error) if is_last && error.kind() == heard.kind() => return Err(heard),
                looked => looked.is_ok(),
            };
            if !tries.again() {
                return Err(attempt.unknown(&heard));
            }
        }
    }
}

/// True if an error is a judgement of the attempt itself: another copy of it, which may come later, is judged alike.
fn is_judgement(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Invalid
            | ErrorKind::Unique
            | ErrorKind::Reference
            | ErrorKind::Refused
            | ErrorKind::InUse
            | ErrorKind::Unsupported
    )
}

/// Tries with pauses, until a deadline.
#[derive(Debug)]
pub(crate) struct Tries {
    end: Duration,
    pause: Duration,
    longest: Duration,
}

impl Tries {
    /// Begins now; the pauses double, up to `longest`.
    pub(crate) fn new(patience: Patience, longest: Duration) -> Self {
        Self::since(SystemClock.elapsed(), patience, longest)
    }

    /// Begins at a time that is over.
    pub(crate) fn since(begun: Duration, patience: Patience, longest: Duration) -> Self {
        Self { end: begun + patience.deadline, pause: patience.pause, longest }
    }

    fn are_over(&self) -> bool {
        SystemClock.elapsed() >= self.end
    }

    /// Pauses; returns false if the deadline is over.
    pub(crate) fn again(&mut self) -> bool {
        if self.are_over() {
            return false;
        }
        SystemClock.pause(self.pause);
        self.pause = self.longest.min(self.pause * 2);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Look = fn() -> Result<Seen<(), ()>>;

    /// What an attempt hears and sees, one after the other; whoever has heard all of it is told that it is done.
    struct Scripted {
        answers: Vec<fn() -> Answer<()>>,
        looks: Vec<Look>,
        /// True if a copy may be on its way after the answers so far.
        is_loose: bool,
    }

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "scripted")
    }

    impl Attempt for Scripted {
        type Done = ();
        type Other = ();

        fn send(&mut self) -> Answer<()> {
            let answer = self.answers.pop().map_or(Answer::Done(()), |answer| answer());
            self.is_loose |= matches!(answer, Answer::Unproven(_));
            answer
        }

        fn look(&mut self) -> Result<Seen<(), ()>> {
            self.looks.pop().map_or(Ok(Seen::Nothing), |look| look())
        }

        fn is_passing(&self, refusal: &Error) -> bool {
            refusal.kind() == ErrorKind::Busy
        }

        fn unknown(&self, _heard: &Error) -> Error {
            error(ErrorKind::UnknownOutcome)
        }
    }

    const ANSWERS: [fn() -> Answer<()>; 6] = [
        || Answer::NotSent(error(ErrorKind::Unreachable)),
        || Answer::NotSent(error(ErrorKind::Conflict)),
        || Answer::Refused(error(ErrorKind::Unique)),
        || Answer::Refused(error(ErrorKind::Busy)),
        || Answer::Refused(error(ErrorKind::Io)),
        || Answer::Unproven(error(ErrorKind::Unreachable)),
    ];
    const LOOKS: [Look; 4] = [
        || Ok(Seen::Mine(())),
        || Ok(Seen::Another(())),
        || Ok(Seen::Nothing),
        || Err(error(ErrorKind::Unreachable)),
    ];

    /// Returns all sequences of at most so many.
    fn sequences<T: Copy>(of: &[T], most: usize) -> Vec<Vec<T>> {
        let mut all = vec![Vec::new()];
        let mut last = all.clone();
        for _ in 0..most {
            let longer = |it: &Vec<T>| {
                let it = it.clone();
                of.iter().map(move |next| [it.clone(), vec![*next]].concat()).collect::<Vec<_>>()
            };
            last = last.iter().flat_map(longer).collect();
            all.extend(last.clone());
        }
        all
    }

    #[test]
    fn nothing_is_said_that_what_was_heard_and_seen_does_not_prove() {
        let (mut counts, looks) = ([0; 5], sequences(&LOOKS, 3));
        for answers in sequences(&ANSWERS, 4) {
            for looks in &looks {
                for is_over in [true, false] {
                    let end =
                        SystemClock.elapsed() + Duration::from_secs(u64::from(!is_over) * 3600);
                    let mut tries = Tries { end, pause: Duration::ZERO, longest: Duration::ZERO };
                    let (answers, looks) = (answers.clone(), looks.clone());
                    let mut scripted = Scripted { answers, looks, is_loose: false };
                    let settled = settle(&mut scripted, &mut tries);
                    let what = match &settled {
                        Ok(Settled::Done(())) => 0,
                        Ok(Settled::Conflict(())) => 1,
                        Ok(Settled::NotSent(_)) => 2,
                        Err(error) if error.kind() == ErrorKind::UnknownOutcome => 3,
                        Err(_) => 4,
                    };
                    counts[what] += 1;
                    let is_proven = match &settled {
                        Ok(Settled::NotSent(_)) => !scripted.is_loose,
                        Err(error) => match error.kind() {
                            // Only the end of the time is a reason not to know.
                            ErrorKind::UnknownOutcome => is_over,
                            // Any copy would be judged alike.
                            ErrorKind::Unique => true,
                            _ => !scripted.is_loose,
                        },
                        Ok(_) => true,
                    };
                    assert!(is_proven, "{settled:?}, loose: {}", scripted.is_loose);
                }
            }
        }
        assert!(counts.iter().all(|count| *count > 0), "each was met: {counts:?}");
    }
}
