//! Scenarios: work that several contestants do in turns, as implementations of one trait.
//!
//! In a turn each contestant does the work once. Each turn starts with another contestant, so that none profits from
//! its place. A figure is the median of all turns.

use std::path::Path;

use crate::engines::Failure;
use crate::figures::{Figure, Measured};
use crate::keys::Kind;

/// Work that contestants do in turns.
pub(crate) trait Scenario {
    /// An engine, or a group of threads.
    type Contestant: Copy;

    /// Lets a contestant do the work once, in an empty folder.
    fn work(
        &mut self,
        contestant: Self::Contestant,
        folder: &Path,
        measured: &mut Measured,
    ) -> Result<(), Failure>;

    /// Compares the contestants after a turn.
    fn end(&mut self, _measured: &mut Measured) -> Result<(), Failure> {
        Ok(())
    }
}

/// Runs a scenario.
pub(crate) fn run<S: Scenario>(
    scenario: &mut S,
    mut contestants: Vec<S::Contestant>,
    turns: usize,
) -> Result<Vec<Figure>, Failure> {
    let all = tempfile::tempdir()?;
    let mut measured = Measured::default();
    for turn in 0..turns {
        for (place, contestant) in contestants.iter().enumerate() {
            let folder = all.path().join(format!("{turn} {place}"));
            std::fs::create_dir_all(&folder)?;
            scenario.work(*contestant, &folder, &mut measured)?;
        }
        scenario.end(&mut measured)?;
        let next = contestants.len().min(1);
        contestants.rotate_left(next);
    }
    Ok(measured.medians())
}

/// An engine of a scenario that needs other tables than [`engines`](crate::engines) have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// The ordered map of the standard library.
    Map,
    Annals,
    Sqlite,
    Keys(Kind),
}

/// All peers, by their names on the command line.
pub(crate) const PEERS: [(&str, Peer); 6] = [
    ("map", Peer::Map),
    ("annals", Peer::Annals),
    ("sqlite", Peer::Sqlite),
    ("lmdb", Peer::Keys(Kind::Lmdb)),
    ("redb", Peer::Keys(Kind::Redb)),
    ("fjall", Peer::Keys(Kind::Fjall)),
];

impl Peer {
    /// Returns its name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Map => "BTreeMap<String, u64>",
            Self::Annals => "Annals",
            Self::Sqlite => "SQLite WAL",
            Self::Keys(kind) => kind.name(),
        }
    }

    /// Returns those of some names on the command line, in the order of [`PEERS`].
    pub(crate) fn of(names: &[String]) -> Vec<Self> {
        let wanted = PEERS.iter().filter(|(key, _)| names.iter().any(|name| name == key));
        wanted.map(|(_, peer)| *peer).collect()
    }
}

/// Returns the names of peers on the command line, from one on.
pub(crate) fn keys_from(first: &str) -> Vec<&'static str> {
    PEERS.into_iter().map(|(key, _)| key).skip_while(|key| *key != first).collect()
}
