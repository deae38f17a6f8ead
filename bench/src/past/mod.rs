//! The past, beside the ways that others keep it: histories, rows and sums of an old moment, differences, undoing.
//!
//! A table of accounts is loaded in one transaction, and changed in many of one change each. Every question is asked
//! in a process of its own: *cold* is its first answer, with all files in the page cache, *warm* the median of the
//! next ones. Engines take turns. Each answer is compared with the model of [`work`], and a wrong one fails the run.
//!
//! `DoltLite` has the symbols of SQLite, so it is a program of its own, `bench/doltlite`, which shares the files
//! `work` and `step`.

mod annals;
mod sqlite;
mod step;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::disk;
use crate::engines::Failure;
use crate::figures::{Figure, Measured, settle};
use step::Form;

/// What is written and asked.
#[derive(clap::Args)]
pub(crate) struct Course {
    /// Rows that are loaded in one transaction.
    #[arg(id = "loaded", long = "loaded", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) rows: u64,
    /// Transactions of one change each.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..))]
    changes: u64,
    /// Transactions of one change each that wait for the disk, in a database of their own.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..))]
    durable: u64,
    /// Only these questions, and what it takes to ask them.
    #[arg(long = "ask", value_delimiter = ',', value_parser = ASKED.map(|asked| asked.key))]
    asked: Vec<String>,
    /// The engines.
    #[arg(id = "peers", long = "engines", value_delimiter = ',')]
    #[arg(value_parser = PEERS.map(|(key, _)| key), default_values = PEERS.map(|(key, _)| key))]
    engines: Vec<String>,
    /// The program with `DoltLite`, if it is elsewhere than its build puts it.
    #[arg(long)]
    doltlite: Option<PathBuf>,
}

/// All engines, with their names in the table.
const PEERS: [(&str, &str); 3] =
    [("annals", "Annals"), ("sqlite", "SQLite + triggers"), ("doltlite", "DoltLite")];
const PROGRAM: &str = "annals-bench-doltlite";
const BUILD: &str = "cargo build --release --manifest-path bench/doltlite/Cargo.toml";

/// A question on the command line, and in the table.
struct Asked {
    key: &'static str,
    title: &'static str,
}

/// All questions of the model.
const ASKED: [Asked; 8] = [
    Asked { key: "hot", title: "history of the hot row" },
    Asked { key: "short", title: "history of 5 versions" },
    Asked { key: "row", title: "one row by id, half way" },
    Asked { key: "index", title: "one row by a unique index, half way" },
    Asked { key: "first", title: "first row, half way" },
    Asked { key: "sum", title: "sum of all rows, half way" },
    Asked { key: "difference", title: "difference of 1 transaction" },
    Asked { key: "differences", title: "difference of 1,000 transactions" },
];

/// A step of an engine in this program.
#[derive(clap::Args)]
pub(crate) struct Step {
    engine: String,
    arguments: Vec<String>,
}

impl Step {
    /// Takes the step.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        match &*self.engine {
            "annals" => step::take(&annals::Annals, &self.arguments),
            "sqlite" => step::take(&sqlite::Sqlite, &self.arguments),
            other => Err(format!("{other} is no engine of this program").into()),
        }
    }
}

/// An engine and its folder.
struct Contestant {
    key: &'static str,
    name: &'static str,
    program: PathBuf,
    folder: PathBuf,
}

impl Contestant {
    /// Takes a step in a process of its own; returns its figures, in nanoseconds.
    fn step(&self, form: Form, arguments: [&str; 4]) -> Result<Vec<(String, f64)>, Failure> {
        let folder = self.folder.join(form.name());
        std::fs::create_dir_all(&folder)?;
        disk::warm(&folder)?;
        settle();
        let mut command = Command::new(&self.program);
        if self.key != "doltlite" {
            command.args(["past-step", self.key]);
        }
        let [deed, more @ ..] = arguments;
        let output = command.arg(deed).arg(folder).args(more).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{}: {arguments:?}: {}", self.name, output.status).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let figures = text.lines().map(|line| {
            let (name, value) = line.split_once(' ').ok_or("no figure")?;
            Ok((name.to_owned(), value.parse()?))
        });
        figures.collect()
    }
}

impl Course {
    /// Returns the title of the table, and what it lacks.
    pub(crate) fn title(&self) -> Result<String, Failure> {
        let mut title =
            format!("The past: {} rows, then {} transactions of a change", self.rows, self.changes);
        if self.engines.iter().any(|key| key == "doltlite") && self.doltlite()?.is_none() {
            title.push_str(&format!("; without DoltLite, which `{BUILD}` builds"));
        }
        Ok(title)
    }

    /// Returns the program with `DoltLite`, if it is built.
    fn doltlite(&self) -> Result<Option<PathBuf>, Failure> {
        if let Some(program) = &self.doltlite {
            return match program.exists() {
                true => Ok(Some(program.clone())),
                false => {
                    Err(format!("there is no {}: `{BUILD}` makes it", program.display()).into())
                }
            };
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("doltlite/target/release");
        let places = [std::env::current_exe()?.with_file_name(PROGRAM), own.join(PROGRAM)];
        Ok(places.into_iter().find(|program| program.exists()))
    }

    fn contestants(&self, all: &Path) -> Result<Vec<Contestant>, Failure> {
        let mut contestants = Vec::new();
        for (key, name) in PEERS {
            let program = match key {
                "doltlite" => self.doltlite()?,
                _ => Some(std::env::current_exe()?),
            };
            let wanted = self.engines.iter().any(|engine| engine == key);
            if let Some(program) = program.filter(|_| wanted) {
                contestants.push(Contestant { key, name, program, folder: all.join(key) });
            }
        }
        Ok(contestants)
    }

    fn asks(&self, key: &str) -> bool {
        self.asked.is_empty() || self.asked.iter().any(|asked| asked == key)
    }
}

/// Writes, asks and undoes.
pub(crate) fn run(course: &Course, turns: usize) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut contestants = course.contestants(all.path())?;
    let mut measured = Measured::default();
    let (rows, changes) = (course.rows.to_string(), course.changes.to_string());
    for contestant in &contestants {
        let write = |form: Form, changes: &str| {
            contestant.step(form, ["write", &rows, changes, form.name()])
        };
        let figures = write(Form::Soft, &changes)?;
        if course.asks("index") {
            write(Form::Indexed, &changes)?;
        }
        if !course.asked.is_empty() {
            continue;
        }
        written(contestant, "commit, not waiting", &figures, &mut measured);
        let figures = write(Form::Durable, &course.durable.to_string())?;
        written(contestant, "commit, durable", &figures, &mut measured);
        kept(contestant, Form::Soft, "on disk, closed", &mut measured)?;
        if contestant.key == "annals" {
            write(Form::NoKeyFrames, &changes)?;
            let what = "on disk, closed, no key frames";
            kept(contestant, Form::NoKeyFrames, what, &mut measured)?;
        }
    }
    for _ in 0..turns {
        for asked in ASKED.iter().filter(|asked| course.asks(asked.key)) {
            let form = if asked.key == "index" { Form::Indexed } else { Form::Soft };
            for contestant in &contestants {
                let figures = contestant.step(form, ["ask", &rows, &changes, asked.key])?;
                answered(contestant, asked.title, &figures, &mut measured);
            }
        }
        contestants.rotate_left(1);
    }
    for turn in (0..turns).filter(|_| course.asked.is_empty()) {
        for contestant in &contestants {
            let turn = turn.to_string();
            let figures = contestant.step(Form::Soft, ["undo", &rows, &changes, &turn])?;
            answered(contestant, "undoing a transaction, not waiting", &figures, &mut measured);
        }
    }
    Ok(measured.medians())
}

/// Adds the durations of commits.
fn written(
    contestant: &Contestant,
    what: &'static str,
    figures: &[(String, f64)],
    measured: &mut Measured,
) {
    for (name, value) in figures {
        match &**name {
            "median" => measured.add(contestant.name, (what, "us, median"), value / 1e3),
            "mean" => measured.add(contestant.name, (what, "us, mean"), value / 1e3),
            _ => {}
        }
    }
}

/// Adds the sizes of files, closed.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn kept(
    contestant: &Contestant,
    form: Form,
    what: &'static str,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let bytes = disk::length(&contestant.folder.join(form.name()))?;
    measured.add(contestant.name, (what, "MB"), bytes as f64 / 1e6);
    Ok(())
}

/// Adds the durations of an opening, of the first answer and of the next ones.
fn answered(
    contestant: &Contestant,
    what: &'static str,
    figures: &[(String, f64)],
    measured: &mut Measured,
) {
    for (name, value) in figures {
        let (workload, unit) = match &**name {
            "opening" => ("opening", "us"),
            "cold" => (what, "us, cold"),
            "warm" => (what, "us, warm"),
            _ => continue,
        };
        measured.add(contestant.name, (workload, unit), value / 1e3);
    }
}
