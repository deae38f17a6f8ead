//! Races: several runners do the same thing over and over, in slices so short that all of them see the
//! same minutes of the machine.
//!
//! A turn is a number of rounds; in each round every runner has one slice, and each round begins with another runner.
//! A turn in which a reference moved twofold between its halves is invalid and is run again.

use crate::engines::Failure;
use crate::figures::nanoseconds;

/// One who takes part.
pub(crate) struct Runner<'a> {
    pub(crate) name: &'static str,
    /// The place of the one it is compared with; its own: a reference.
    pub(crate) beside: usize,
    /// The target of the comparison, in words.
    pub(crate) target: &'static str,
    /// Prepares for more commits, which isn't timed.
    pub(crate) prepare: Box<dyn FnMut(u64) -> Result<(), Failure> + 'a>,
    /// Commits so often.
    pub(crate) run: Box<dyn FnMut(u64) -> Result<(), Failure> + 'a>,
}

impl<'a> Runner<'a> {
    /// Makes a runner who needs no preparation.
    pub(crate) fn new(
        name: &'static str,
        (beside, target): (usize, &'static str),
        run: impl FnMut(u64) -> Result<(), Failure> + 'a,
    ) -> Self {
        Self { name, beside, target, prepare: Box::new(|_| Ok(())), run: Box::new(run) }
    }
}

/// How long a race is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) turns: usize,
    pub(crate) rounds: usize,
    /// Commits in a slice.
    pub(crate) slice: u64,
}

/// The result of a race.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) title: &'static str,
    pub(crate) course: Course,
    /// How many turns were run again.
    pub(crate) repeated: usize,
    pub(crate) lines: Vec<Line>,
}

/// The result of one runner.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// The one it is compared with; none for a reference.
    pub(crate) beside: Option<&'static str>,
    pub(crate) target: &'static str,
    /// Microseconds a commit.
    pub(crate) micros: Spread,
    /// The comparison within each turn.
    pub(crate) ratio: Spread,
}

/// The result of many turns: their median, and their extremes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { median: values[values.len() / 2], least: values[0], most: values[values.len() - 1] }
    }
}

/// Runs a race. There is at least one turn.
pub(crate) fn run(
    title: &'static str,
    course: Course,
    runners: &mut [Runner<'_>],
) -> Result<Outcome, Failure> {
    let course = Course { turns: course.turns.max(1), rounds: course.rounds.max(2), ..course };
    turn(Course { rounds: 2, ..course }, runners)?; // makes everything warm
    let (mut turns, mut repeated) = (Vec::new(), 0);
    while turns.len() < course.turns {
        let times = turn(course, runners)?;
        if moved(&times, runners) && repeated < course.turns {
            repeated += 1;
        } else {
            turns.push(times);
        }
    }
    let per_turn =
        |place: usize| turns.iter().map(move |turn: &Turn| turn[place][0] + turn[place][1]);
    let lines = runners.iter().enumerate().map(|(place, runner)| {
        let ratio = |(ours, theirs): (f64, f64)| ours / theirs;
        Line {
            name: runner.name,
            beside: (runner.beside != place).then(|| runners[runner.beside].name),
            target: runner.target,
            micros: Spread::of(per_turn(place).map(|sum| sum / 2e3).collect()),
            ratio: Spread::of(per_turn(place).zip(per_turn(runner.beside)).map(ratio).collect()),
        }
    });
    Ok(Outcome { title, course, repeated, lines: lines.collect() })
}

/// Nanoseconds a commit of each runner, in both halves of a turn.
type Turn = Vec<[f64; 2]>;

fn turn(course: Course, runners: &mut [Runner<'_>]) -> Result<Turn, Failure> {
    let mut times = vec![[0.0; 2]; runners.len()];
    let mut rounds = [0u32; 2];
    for runner in &mut *runners {
        (runner.prepare)(course.slice * course.rounds as u64)?;
    }
    for round in 0..course.rounds {
        let half = usize::from(2 * round >= course.rounds);
        rounds[half] += 1;
        for step in 0..runners.len() {
            let place = (round + step) % runners.len();
            let run = &mut runners[place].run;
            times[place][half] += nanoseconds(course.slice, || run(course.slice))?;
        }
    }
    for halves in &mut times {
        for (time, rounds) in halves.iter_mut().zip(rounds) {
            *time /= f64::from(rounds);
        }
    }
    Ok(times)
}

/// True if a reference took twice as long in one half of the turn as in the other.
fn moved(turn: &Turn, runners: &[Runner<'_>]) -> bool {
    let references = runners.iter().enumerate().filter(|(place, runner)| runner.beside == *place);
    references.map(|(place, _)| turn[place]).any(|[first, second]| {
        let change = first / second;
        !(0.5..=2.0).contains(&change)
    })
}
