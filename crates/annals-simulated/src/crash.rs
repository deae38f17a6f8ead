//! Everything that a crash may leave on the disk: counted, numbered, and sampled.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fact::{Fact, Open};
use crate::inode::{Inode, SECTOR_SIZE, Sector, sectors_of, zeros};
use crate::machine::Machine;
use crate::{Rng, SimulatedDisk};

/// All disks that may be found after a crash; each is made on demand.
///
/// Making one costs about as much as copying a pointer for each sector of the files.
#[derive(Clone, Debug)]
pub struct CrashStates {
    seed: u64,
    names: Vec<(String, Open<Option<u64>>)>,
    files: Vec<File>,
    /// When any fact that is open was set, in order.
    moments: Vec<u64>,
}

/// One file, with all that may be found of it.
#[derive(Clone, Debug)]
struct File {
    number: u64,
    is_device: bool,
    length: Open<u64>,
    /// The newest content of every sector.
    base: Vec<Sector>,
    /// Those of which more than one content is possible, in order.
    open: Vec<(usize, Open<Sector>)>,
}

/// How a random state is drawn. Mistakes in a program often need one particular order of writes,
/// which independent draws find too rarely.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Every fact on its own.
    Independent,
    /// Every fact on its own, with this percentage the newest, else the oldest.
    Biased(u64),
    /// As it was after this operation: all writes in order.
    UpTo(u64),
    /// All operations from this one on and none before: the reversed order.
    From(u64),
    /// One of this many facts is the newest or the oldest, all others the opposite.
    Odd { one: usize, is_newest: bool },
}

impl CrashStates {
    pub(crate) fn new(machine: &Machine, garbage: bool) -> Self {
        let names: Vec<_> =
            machine.names.iter().map(|(name, fact)| (name.clone(), fact.open())).collect();
        let reachable =
            |number: u64| names.iter().any(|(_, name)| name.choices.contains(&Some(number)));
        let mut rng = Rng::new(machine.seed ^ machine.operations);
        let mut files = Vec::new();
        for (&number, inode) in machine.inodes.iter().filter(|(number, _)| reachable(**number)) {
            let mut file = File::new(number, inode);
            for (_, sector) in file.open.iter_mut().filter(|_| garbage) {
                let mut content = [0; SECTOR_SIZE];
                rng.fill(&mut content);
                sector.choices.push(Arc::new(content));
            }
            files.push(file);
        }
        let mut states = Self { seed: machine.seed, names, files, moments: Vec::new() };
        let mut moments = Vec::new();
        states.for_each_history(|history| moments.extend(history.iter().map(|(at, _)| *at)));
        moments.sort_unstable();
        moments.dedup();
        states.moments = moments;
        states
    }

    /// Returns how many states there are; `None` if a number of 128 bits can't say it. Few of them may be the same: a
    /// file without a name is counted with all its contents.
    #[must_use]
    pub fn count(&self) -> Option<u128> {
        let names = self.names.iter().map(|(_, name)| Some(name.choices.len() as u128));
        let files = self.files.iter().map(File::count);
        names.chain(files).try_fold(1_u128, |product, factor| product.checked_mul(factor?))
    }

    /// Returns how many facts (sectors, lengths, names) have more than one possible value.
    #[must_use]
    pub fn open_facts(&self) -> usize {
        let mut count = 0;
        self.for_each_history(|history| count += usize::from(history.len() > 1));
        count
    }

    /// Returns state number `number` of [`count`](Self::count): a fresh disk on which everything is
    /// flushed and no lock is held, with its own count of operations.
    #[must_use]
    pub fn state(&self, number: u128) -> SimulatedDisk {
        let mut rest = number;
        let mut digit = |radix: u128| {
            let digit = rest % radix.max(1);
            rest /= radix.max(1);
            digit
        };
        let mut choices = Vec::new();
        for (_, name) in &self.names {
            choices.push(narrow(digit(name.choices.len() as u128)));
        }
        for file in &self.files {
            // A file with more contents than can be counted takes all that is left of the number.
            let within = digit(file.count().unwrap_or(u128::MAX));
            file.choices(within, &mut choices);
        }
        let mut choices = choices.into_iter();
        self.build(|_, _| choices.next().unwrap_or(0))
    }

    /// Iterates over all states, in order of their numbers.
    #[must_use]
    pub fn every(&self) -> EveryState<'_> {
        EveryState { states: self, next: 0, end: self.count().unwrap_or(u128::MAX) }
    }

    /// Returns a random state. Half of the time every fact is drawn independently. Otherwise it is one of the
    /// patterns in which programs tend to be wrong: all in order up to some moment, all but the last, the last alone,
    /// one fact unlike all others, ..
    #[must_use]
    pub fn random(&self, rng: &mut Rng) -> SimulatedDisk {
        let mode = self.random_mode(rng);
        let mut fact = 0;
        self.build(|history, choices| {
            if choices == 1 {
                return 0;
            }
            fact += 1;
            choose(mode, fact - 1, history, choices, rng)
        })
    }

    /// Returns the disk to which nothing got since the last flushes.
    #[must_use]
    pub fn oldest(&self) -> SimulatedDisk {
        self.build(|history, _| oldest(history))
    }

    /// Returns the disk to which everything got.
    #[must_use]
    pub fn newest(&self) -> SimulatedDisk {
        self.build(|history, _| newest(history))
    }

    /// Returns the disk with all changes except those of the last operation.
    #[must_use]
    pub fn all_but_last(&self) -> SimulatedDisk {
        let before = self.moments.iter().rev().nth(1).copied().unwrap_or(0);
        self.build(|history, _| up_to(history, before))
    }

    fn random_mode(&self, rng: &mut Rng) -> Mode {
        let moment = self.moments.get(rng.index(self.moments.len())).copied().unwrap_or(0);
        let first = self.moments.first().copied().unwrap_or(0);
        let last_but_one = self.moments.iter().rev().nth(1).copied().unwrap_or(0);
        match rng.below(16) {
            0..8 => Mode::Independent,
            8 => Mode::Biased(95),
            9 => Mode::Biased(5),
            10 => Mode::UpTo(u64::MAX),
            11 => Mode::UpTo(if rng.percent(50) { first } else { last_but_one }),
            12 => Mode::UpTo(moment),
            13 => Mode::From(moment),
            _ => Mode::Odd { one: rng.index(self.open_facts()), is_newest: rng.percent(50) },
        }
    }

    /// Calls for every fact: first the names, then of each file its length and its sectors.
    fn for_each_history(&self, mut call: impl FnMut(&[(u64, usize)])) {
        self.names.iter().for_each(|(_, name)| call(&name.history));
        for file in &self.files {
            call(&file.length.history);
            file.open.iter().for_each(|(_, sector)| call(&sector.history));
        }
    }

    /// Makes the disk with the facts that `pick` chooses. `pick` gets a fact's history and the number of choices.
    /// Sectors beyond the chosen length are skipped.
    fn build(&self, mut pick: impl FnMut(&[(u64, usize)], usize) -> usize) -> SimulatedDisk {
        let mut names = BTreeMap::new();
        for (name, open) in &self.names {
            if let Some(Some(number)) = choice(open, &mut pick) {
                names.insert(name.clone(), Fact::flushed(Some(number)));
            }
        }
        let files = self.files.iter().map(|file| (file.number, file.build(&mut pick)));
        let inodes = files.collect();
        SimulatedDisk::from_machine(Machine::new(self.seed, inodes, names))
    }
}

impl File {
    fn new(number: u64, inode: &Inode) -> Self {
        let base = inode.sectors.iter().map(|sector| Arc::clone(sector.newest())).collect();
        let uncertain = inode.sectors.iter().enumerate().filter(|(_, fact)| !fact.is_certain());
        let open = uncertain.map(|(index, fact)| (index, fact.open())).collect();
        Self { number, is_device: inode.is_device, length: inode.length.open(), base, open }
    }

    /// Returns the sectors that are inside a length and open.
    fn open_within(&self, len: u64) -> &[(usize, Open<Sector>)] {
        let end = sectors_of(len);
        &self.open[..self.open.partition_point(|(index, _)| *index < end)]
    }

    /// Returns how many contents are possible with a length.
    fn count_within(&self, len: u64) -> Option<u128> {
        let mut counts = self.open_within(len).iter().map(|(_, sector)| sector.choices.len());
        counts.try_fold(1_u128, |product, count| product.checked_mul(count as u128))
    }

    fn count(&self) -> Option<u128> {
        let mut counts = self.length.choices.iter().map(|len| self.count_within(*len));
        counts.try_fold(0_u128, |sum, count| sum.checked_add(count?))
    }

    /// Adds the choices that content number `number` makes: the length, then the sectors in it.
    fn choices(&self, number: u128, choices: &mut Vec<usize>) {
        let mut rest = number;
        for (index, len) in self.length.choices.iter().enumerate() {
            let count = self.count_within(*len).unwrap_or(u128::MAX);
            if rest >= count && index + 1 < self.length.choices.len() {
                rest -= count;
                continue;
            }
            choices.push(index);
            for (_, sector) in self.open_within(*len) {
                let radix = sector.choices.len() as u128;
                choices.push(narrow(rest % radix));
                rest /= radix;
            }
            return;
        }
    }

    fn build(&self, pick: &mut impl FnMut(&[(u64, usize)], usize) -> usize) -> Inode {
        let len = choice(&self.length, pick).unwrap_or(0);
        let mut content: Vec<_> =
            self.base.iter().take(sectors_of(len)).cloned().map(Fact::flushed).collect();
        for (index, open) in self.open_within(len) {
            if let (Some(place), Some(sector)) = (content.get_mut(*index), choice(open, pick)) {
                *place = Fact::flushed(sector);
            }
        }
        // Bytes after the end in the last sector read as zeros if the file grows again.
        let used = usize::try_from(len % SECTOR_SIZE as u64).unwrap_or(0);
        let is_cut = |last: &Fact<Sector>| last.newest()[used..].iter().any(|byte| *byte != 0);
        if let Some(last) = content.last_mut().filter(|last| used > 0 && is_cut(last)) {
            let mut cut = **last.newest();
            cut[used..].fill(0);
            *last = Fact::flushed(Arc::new(cut));
        }
        content.resize(sectors_of(len), Fact::flushed(zeros()));
        Inode { is_device: self.is_device, ..Inode::with_content(len, content) }
    }
}

fn choice<T: Clone>(
    open: &Open<T>,
    pick: &mut impl FnMut(&[(u64, usize)], usize) -> usize,
) -> Option<T> {
    open.choices.get(pick(&open.history, open.choices.len())).cloned()
}

fn choose(
    mode: Mode,
    fact: usize,
    history: &[(u64, usize)],
    choices: usize,
    rng: &mut Rng,
) -> usize {
    let newest_if = |is_newest| if is_newest { newest(history) } else { oldest(history) };
    match mode {
        Mode::Independent => rng.index(choices),
        Mode::Biased(share) => newest_if(rng.percent(share)),
        Mode::UpTo(moment) => up_to(history, moment),
        Mode::From(moment) => newest_if(history.last().is_some_and(|(at, _)| *at >= moment)),
        Mode::Odd { one, is_newest } => newest_if((fact == one) == is_newest),
    }
}

fn oldest(history: &[(u64, usize)]) -> usize {
    history.first().map_or(0, |(_, choice)| *choice)
}

fn newest(history: &[(u64, usize)]) -> usize {
    history.last().map_or(0, |(_, choice)| *choice)
}

fn up_to(history: &[(u64, usize)], moment: u64) -> usize {
    history.iter().rev().find(|(at, _)| *at <= moment).map_or(0, |(_, choice)| *choice)
}

/// Makes a digit small: it is less than the length of some list.
fn narrow(digit: u128) -> usize {
    usize::try_from(digit).unwrap_or(0)
}

/// An iterator over all states of [`CrashStates`].
#[derive(Clone, Debug)]
pub struct EveryState<'a> {
    states: &'a CrashStates,
    next: u128,
    end: u128,
}

impl Iterator for EveryState<'_> {
    type Item = SimulatedDisk;

    fn next(&mut self) -> Option<SimulatedDisk> {
        if self.next >= self.end {
            return None;
        }
        self.next += 1;
        Some(self.states.state(self.next - 1))
    }
}

impl SimulatedDisk {
    /// Returns all states that may be on the disk if the power goes off now, or went off before.
    #[must_use]
    pub fn crash_states(&self) -> CrashStates {
        CrashStates::new(&self.machine(), false)
    }

    /// Does what [`crash_states`](Self::crash_states) does, but a sector that was being written may also hold
    /// garbage: the disk doesn't write sectors wholly or not at all.
    #[must_use]
    pub fn crash_states_with_garbage(&self) -> CrashStates {
        CrashStates::new(&self.machine(), true)
    }
}
