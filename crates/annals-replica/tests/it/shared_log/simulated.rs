//! A log in memory, with the faults of a real one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals::{Error, ErrorKind, Result};
use annals_replica::shared_log::{Appended, Extent, Log, Message, Replicas, Source};
use annals_simulated::Rng;
use annals_storage::{Clock as _, SystemClock};
use bytes::Bytes;

/// How a replica answers for a message, if not as it should.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Missing,
    Flipped(usize),
}

/// How often things go wrong, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// An append gets no answer: it arrived, didn't, or arrives later.
    pub(crate) lost: u64,
    /// A leader that was replaced says that the log ends elsewhere: the append arrived, didn't, or arrives later.
    pub(crate) stale: u64,
    /// The log has no leader.
    pub(crate) leaderless: u64,
    /// A replica lags.
    pub(crate) late: u64,
    /// A request to read gets no answer.
    pub(crate) silent: u64,
}

struct State {
    messages: Vec<Message>,
    /// How many messages were removed, from the first one on.
    removed: u64,
    /// What each replica has wrong.
    damage: [BTreeMap<u64, Damage>; 3],
    leader: usize,
    /// Appends that may arrive yet.
    delayed: Vec<(u64, Vec<Bytes>)>,
    faults: Faults,
    rng: Rng,
    /// How far the log's clock is ahead.
    ahead: i64,
    /// How long each append takes.
    round_trip: Duration,
    /// The last message that a leader knows which was cut off, and still answers.
    stale: Option<u64>,
}

/// A log of three replicas; its clones are the same log.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Mutex<State>>);

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Simulated")
    }
}

fn unreachable(what: &str) -> Error {
    Error::new(ErrorKind::Unreachable, format!("simulated: {what}"))
}

impl Simulated {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            messages: Vec::new(),
            removed: 0,
            damage: Default::default(),
            leader: 0,
            delayed: Vec::new(),
            faults,
            rng: Rng::new(seed),
            ahead: 0,
            round_trip: Duration::ZERO,
            stale: None,
        })))
    }

    /// A log that has some messages.
    pub(crate) fn of(messages: Vec<Message>) -> Self {
        let log = Self::new(1, Faults::default());
        log.state().messages = messages;
        log
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Lets the log's clock jump.
    pub(crate) fn set_ahead(&self, micros: i64) {
        self.state().ahead = micros;
    }

    /// Lets each append take so long.
    pub(crate) fn set_round_trip(&self, round_trip: Duration) {
        self.state().round_trip = round_trip;
    }

    /// Lets a leader answer that was cut off when this was the last message; or the one that leads.
    pub(crate) fn set_stale(&self, last: Option<u64>) {
        self.state().stale = last;
    }

    /// Lets all appends arrive that were given up.
    pub(crate) fn deliver_all(&self) {
        let mut state = self.state();
        for (after, messages) in std::mem::take(&mut state.delayed) {
            state.try_append(after, &messages);
        }
    }

    /// Elects another leader.
    pub(crate) fn elect(&self, replica: usize) {
        self.state().leader = replica;
    }

    /// Damages one replica: it lacks messages, and has flipped bits in others; the other replicas are whole again.
    pub(crate) fn damage(&self, replica: usize, percent: u64) {
        let mut state = self.state();
        state.damage = Default::default();
        for sequence in 1..=state.messages.len() as u64 {
            if !state.rng.percent(percent) {
                continue;
            }
            let damage = match state.rng.percent(50) {
                true => Damage::Missing,
                false => Damage::Flipped(state.rng.index(1 << 16)),
            };
            state.damage[replica].insert(sequence, damage);
        }
    }

    /// Makes a replica whole again.
    pub(crate) fn mend(&self, replica: usize) {
        self.state().damage[replica].clear();
    }

    /// Lets all replicas lack a message: no judgement may come of that.
    pub(crate) fn lose(&self, sequence: u64) {
        let mut state = self.state();
        for damage in &mut state.damage {
            damage.insert(sequence, Damage::Missing);
        }
    }

    /// Appends bytes that no node made.
    pub(crate) fn poison(&self, bytes: impl Into<Bytes>) -> u64 {
        let mut state = self.state();
        state.append(bytes.into());
        state.messages.len() as u64
    }

    /// Begins again with nothing in it.
    pub(crate) fn recreate(&self) {
        self.state().messages.clear();
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.state().messages.clone()
    }
}

impl State {
    fn append(&mut self, bytes: Bytes) {
        let (sequence, time) = (self.messages.len() as u64 + 1, SystemClock.now() + self.ahead);
        self.messages.push(Message { sequence, time, bytes });
    }

    /// Appends messages as far as each comes after the one before.
    fn try_append(&mut self, after: u64, messages: &[Bytes]) -> bool {
        if self.messages.len() as u64 != after {
            return false;
        }
        messages.iter().for_each(|bytes| self.append(bytes.clone()));
        true
    }

    /// Receives an append that isn't answered as it should.
    fn receive(&mut self, after: u64, messages: Vec<Bytes>) {
        let kept = self.rng.index(messages.len() + 1);
        match self.rng.below(5) {
            // Nothing arrives.
            0 => {}
            1 => self.delayed.push((after, messages)),
            2 => drop(self.try_append(after, messages.get(..kept).unwrap_or_default())),
            // Twice: a client has sent it again.
            3 => {
                self.try_append(after, &messages);
                self.delayed.push((after, messages));
            }
            _ => drop(self.try_append(after, &messages)),
        }
    }

    /// Lets an append arrive that was given up.
    fn deliver(&mut self) {
        if !self.delayed.is_empty() && self.rng.percent(30) {
            let place = self.rng.index(self.delayed.len());
            let (after, messages) = self.delayed.remove(place);
            self.try_append(after, &messages);
        }
    }

    /// Returns a message as a replica has it.
    fn of(&self, replica: usize, sequence: u64) -> Option<Message> {
        let place = usize::try_from(sequence.checked_sub(1)?).ok()?;
        if sequence <= self.removed {
            return None;
        }
        let mut message = self.messages.get(place)?.clone();
        match self.damage.get(replica)?.get(&sequence) {
            None => {}
            Some(Damage::Missing) => return None,
            Some(Damage::Flipped(bit)) => {
                let mut bytes = message.bytes.to_vec();
                let bit = bit % (bytes.len() * 8).max(1);
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
                message.bytes = bytes.into();
            }
        }
        Some(message)
    }
}

impl Log for Simulated {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn most(&self) -> Result<usize> {
        Ok(4 << 10)
    }

    fn append(&self, after: u64, messages: Vec<Bytes>) -> Result<Appended> {
        let round_trip = self.state().round_trip;
        SystemClock.pause(round_trip);
        let mut state = self.state();
        state.deliver();
        let Faults { lost, stale, leaderless, .. } = state.faults;
        if state.rng.percent(leaderless) {
            return Err(unreachable("no leader"));
        }
        let is_lost = state.rng.percent(lost);
        if is_lost || state.rng.percent(stale) {
            state.receive(after, messages);
            return Ok(match is_lost {
                true => Appended::Unknown(unreachable("no answer")),
                false => Appended::Refused,
            });
        }
        Ok(match state.try_append(after, &messages) {
            true => {
                let time = state.messages.last().map(|it| it.time);
                Appended::Committed(time.filter(|_| state.rng.percent(50)))
            }
            false => Appended::Refused,
        })
    }

    fn read(&self, from: u64, most: usize) -> Result<Vec<Message>> {
        let mut state = self.state();
        state.deliver();
        let Faults { late, silent, .. } = state.faults;
        if state.rng.percent(silent) {
            return Err(unreachable("no answer"));
        }
        let replica = state.rng.index(3);
        let lag = if state.rng.percent(late) { state.rng.below(3) } else { 0 };
        let end = (state.messages.len() as u64).saturating_sub(lag);
        let (mut read, mut len) = (Vec::new(), 0);
        for message in (from..=end).filter_map(|sequence| state.of(replica, sequence)) {
            if len > 0 && len + message.bytes.len() > most.min(16 << 10) {
                break;
            }
            len += message.bytes.len();
            read.push(message);
        }
        Ok(read)
    }

    fn get(&self, sequence: u64, source: Source) -> Result<Option<Message>> {
        let mut state = self.state();
        let Faults { silent, .. } = state.faults;
        if state.rng.percent(silent) {
            return Err(unreachable("no answer"));
        }
        Ok(match source {
            Source::Any => {
                let replica = state.rng.index(3);
                state.of(replica, sequence)
            }
            Source::Leader => state.of(state.leader, sequence),
        })
    }

    fn copies(&self, sequence: u64) -> Result<Replicas> {
        let mut state = self.state();
        let Faults { silent, .. } = state.faults;
        let mut copies = Vec::new();
        for replica in 0..3 {
            if !state.rng.percent(silent) {
                copies.push(state.of(replica, sequence));
            }
        }
        match copies.is_empty() {
            true => Err(unreachable("no answer")),
            false => Ok(Replicas { count: 3, copies }),
        }
    }

    fn extent(&self) -> Result<Extent> {
        let mut state = self.state();
        let Faults { silent, .. } = state.faults;
        if state.rng.percent(silent) {
            return Err(unreachable("no answer"));
        }
        let last = state.stale.unwrap_or(state.messages.len() as u64);
        Ok(Extent { first: state.removed + 1, last })
    }

    fn confirmed(&self) -> Result<Option<Extent>> {
        let extent = self.extent()?;
        Ok(self.state().stale.is_none().then_some(extent))
    }

    fn remove(&self, before: u64) -> Result<()> {
        self.state().removed = before - 1;
        Ok(())
    }

    fn wait(&self, after: u64, timeout: Duration) {
        let until = SystemClock.elapsed() + timeout;
        while (self.state().messages.len() as u64) <= after && SystemClock.elapsed() < until {
            SystemClock.pause(Duration::from_millis(1));
        }
    }
}
