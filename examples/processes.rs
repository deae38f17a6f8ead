//! Several processes write one file, in turn, and one follows it. `cargo run --release --example processes`
//!
//! It runs itself: with a path and a number as arguments it is one of the writers.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use std::path::Path;
use std::process::Command;

annals::schema!("processes.schema");

use processes::{counter, visit};

const WRITERS: u32 = 4;
const VISITS: u32 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, path, visitor] = &arguments[..] {
        return Ok(write(Path::new(path), visitor.parse()?)?);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("visits.annals");
    let db = processes::Database::open_with(&path, &shared())?;

    let program = std::env::current_exe()?;
    let start = |visitor: u32| Command::new(&program).arg(&path).arg(visitor.to_string()).spawn();
    let mut writers = (1..=WRITERS).map(start).collect::<Result<Vec<_>, _>>()?;
    writers[0].kill()?; // in the middle of anything: the others go on

    // A reader takes no lock. What it sees is always what some commit left.
    let reader = processes::Database::open_read_only(&path)?;
    while writers.iter_mut().any(|writer| writer.try_wait().is_ok_and(|status| status.is_none())) {
        let now = reader.pull()?;
        assert_eq!(now.counter()?.visits(), now.visit().len());
    }

    let now = db.pull()?; // what the others committed
    for visitor in 2..=WRITERS {
        let visits = now.visit().into_iter().flatten().filter(|visit| visit.visitor() == visitor);
        println!("visitor {visitor}: {} visits", visits.count());
    }
    assert_eq!(now.counter()?.visits(), now.visit().len());
    Ok(db.close()?)
}

fn shared() -> annals::Options {
    annals::Options::new().shared(true)
}

/// What each of the other processes does.
fn write(path: &Path, visitor: u32) -> annals::Result<()> {
    let db = processes::Database::open_with(path, &shared())?;
    for number in 0..VISITS {
        db.write(|tx| {
            let visits = tx.counter()?.visits(); // this transaction sees all commits before it
            tx.edit(counter::ROW)?.set_visits(visits + 1)?;
            Ok(tx.insert(visit::New { visitor, number })?)
        })?;
    }
    db.close()
}
