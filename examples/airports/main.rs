//! The main job, on real data: five tables of OurAirports and four years of their daily changes.
//!
//! Loads the state of 2021-11-02, and replays 37,572 changes as dated transactions. Compares the result with the
//! state of 2025-12-31 field by field. Reopens the file from its image, and a copy by replaying the journal, and
//! compares again. Then queries indexes, and reads days of the past and one row's history.
//!
//! `cargo run --release --example airports [FILE]`
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

mod load;
mod past;
mod questions;
mod source;
mod tables;
mod verify;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

annals::schema!("airports.schema");

/// Any error: of the database, of the data, of the disk.
type Anything = Box<dyn Error + Send + Sync>;

const FIRST_DAY: &str = "2021-11-02";
const LAST_DAY: &str = "2025-12-31";

fn main() -> Result<(), Anything> {
    let file = target_file()?;
    let db = airports::Database::open(&file)?;
    timed("loaded the state of 2021-11-02", || load::first_day(&db))?;
    timed("replayed the changes since", || load::changes(&db))?;
    timed("compared with the state of 2025-12-31", || verify::last_day(&db.read()))?;
    timed("closed", || Ok(db.close()?))?;

    let db = timed("reopened from the image", || Ok(airports::Database::open(&file)?))?;
    timed("compared again", || verify::last_day(&db.read()))?;
    questions::ask(&db.read())?;
    past::days(&db)?;
    past::show(&db)?;
    report(&file, &db.read())?;
    timed("closed", || Ok(db.close()?))?;
    replayed(&file)
}

/// The journal alone is the database, all else is made from it: opens a copy that has nothing else, and compares.
fn replayed(file: &Path) -> Result<(), Anything> {
    let copy = file.with_extension("copy.annals");
    std::fs::copy(file, &copy)?;
    let db = timed("opened a copy of the journal", || Ok(airports::Database::open(&copy)?))?;
    timed("compared again", || verify::last_day(&db.read()))?;
    db.close()?;
    removed(&copy)
}

/// Returns the file to work on, which is not there: the argument, or one in the build folder.
fn target_file() -> Result<PathBuf, Anything> {
    if let Some(path) = std::env::args_os().nth(1) {
        let path = PathBuf::from(path);
        if path.exists() {
            return Err(format!("{}: it exists; name a new file", path.display()).into());
        }
        return Ok(path);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::fs::create_dir_all(&folder)?;
    let path = folder.canonicalize()?.join("airports.annals");
    removed(&path)?;
    Ok(path)
}

/// Removes a journal and its image, if they are there.
fn removed(file: &Path) -> Result<(), Anything> {
    for old in [image_of(file), file.to_owned()] {
        match std::fs::remove_file(&old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Returns where the image of a journal is.
fn image_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push("-image");
    path.into()
}

/// Runs a step, and tells what it did and how long it took.
fn timed<T>(what: &str, step: impl FnOnce() -> Result<T, Anything>) -> Result<T, Anything> {
    #[allow(clippy::disallowed_methods, reason = "an example measures with the real clock")]
    let start = Instant::now();
    let value = step()?;
    println!("{what} in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(value)
}

/// Prints sizes and memory.
fn report(file: &Path, now: &airports::Snapshot) -> Result<(), Anything> {
    let journal = std::fs::metadata(file)?.len();
    println!(
        "\nThe journal: {}, {:.1} MB, {} transactions",
        file.display(),
        mega(journal),
        now.txid()
    );
    println!("The store in memory: {:.1} MB", mega(now.as_dynamic().memory() as u64));
    if let Some(peak) = peak_memory() {
        println!("Peak memory of this program: {:.1} MB", mega(peak));
    }
    println!("Look inside: cargo run --release -p annals-cli -- info {}", file.display());
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The peak resident size in bytes, where the system tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilo| kilo * 1024)
}
