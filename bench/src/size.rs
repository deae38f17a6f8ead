//! The size of a small database on disk: while it is open, and closed.

use std::time::Duration;

use crate::disk;
use crate::engines::{self, Failure, Shape};
use crate::figures::{Figure, Measured};

/// Longer than any engine waits before it does something in the background.
const A_WHILE: Duration = Duration::from_secs(1);

/// The stored data.
#[derive(clap::Args)]
pub(crate) struct Small {
    /// Rows, each committed by itself.
    #[arg(long, default_value_t = 100, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// The engines.
    #[arg(
        long,
        alias = "peers",
        value_delimiter = ',',
        value_parser = engines::keys(),
        default_values = ["annals", "sqlite", "redb"]
    )]
    engines: Vec<String>,
}

/// Stores the rows with each engine.
pub(crate) fn run(small: &Small) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    for key in &small.engines {
        let folder = all.path().join(key);
        std::fs::create_dir_all(&folder)?;
        let engine = engines::find(key)?;
        let mut table = engine.create(&folder, Shape::Named)?;
        for id in 0..small.rows {
            table.insert(id..id + 1, &Shape::Named.names(id..id + 1))?;
        }
        #[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        let mut add = |workload, bytes: u64| {
            measured.add(engine.name(), (workload, "bytes"), bytes as f64);
        };
        add("open, after the last commit, length", disk::length(&folder)?);
        add("open, after the last commit, on disk", disk::allocated(&folder)?);
        #[allow(
            clippy::disallowed_methods,
            reason = "what an engine does in the background takes time"
        )]
        std::thread::sleep(A_WHILE);
        add("open, a second later, length", disk::length(&folder)?);
        add("open, a second later, on disk", disk::allocated(&folder)?);
        table.close()?;
        add("closed, length", disk::length(&folder)?);
        add("closed, on disk", disk::allocated(&folder)?);
    }
    Ok(measured.medians())
}
