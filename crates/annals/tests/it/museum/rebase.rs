//! A rebase, too, changes no past answer: what was accepted before it stays as it was, on all sides.

use std::path::Path;
use std::sync::Arc;

use annals::storage::SystemClock;
use annals::{Database, ErrorKind};
use annals_replica::{Connection, Local, Patience, Rebased, Replica, rebase_journal};
use annals_simulated::SimulatedDisk;

use super::answers::{Asked, Topics};
use super::maintenance::{Allowed, Maintained, compare, options};
use crate::history_model::NAME;
use crate::history_model::world::World;

/// Whose transactions are made again.
enum Own {
    /// Those that a replica made offline.
    Replica(Box<Replica>),
    /// Those of a copy that a program changed.
    Copy(Database),
}

impl Own {
    fn database(&self) -> &Database {
        match self {
            Self::Replica(replica) => replica.database(),
            Self::Copy(copy) => copy,
        }
    }
}

/// How many rebases there were.
#[derive(Debug, Default)]
pub(super) struct Rebases {
    /// Those whose transactions came after those of others.
    made: u64,
    /// Those that clashed.
    clashed: u64,
    /// Those of copies that continued in another file: they must be made in a new copy.
    refused: u64,
}

impl Rebases {
    /// True if there were some; with `all`, some of each kind.
    pub(super) const fn are_some(&self, all: bool) -> bool {
        self.made > 0 && (!all || (self.clashed > 0 && self.refused > 0))
    }
}

/// Opens the database with the clock that replicas have.
fn open(disk: &SimulatedDisk) -> Database {
    options().open_in(Arc::new(disk.clone()), NAME, Arc::new(SystemClock)).unwrap()
}

fn connect(database: &Database) -> Arc<dyn Connection> {
    Arc::new(Local::new(database.clone()))
}

fn replica(database: &Database, path: &Path) -> Replica {
    Replica::connect_with(connect(database), path, &options(), Patience::default()).unwrap()
}

impl Maintained {
    /// Makes transactions without the database, and makes them again after those that it got meanwhile. Compares what is said
    /// of the moments before on each side: here, in the replica, and where the transactions were made first.
    pub(super) fn rebase(&mut self, world: &mut World) {
        let (database, folder) = (open(&world.disk), tempfile::tempdir().unwrap());
        let (last, lines) = (database.read().txid().0, database.read().schema().lines());
        let topics = Topics::draw(&mut self.random, last);
        let before = Asked::Database(&database).ask(&topics);
        let seed = self.seed;
        let mut count = 0;
        let mut look = |database: &Database, what: &str| {
            let now = database.read();
            let wrote = (now.txid().0 > last).then_some(last);
            let schema = now.schema().lines() != lines;
            let allowed = Allowed { wrote, schema, ..Allowed::default() };
            let after = Asked::Database(database).ask(&topics);
            count += compare(&before, &after, &allowed, &format!("seed {seed}, {what}"));
        };
        let path = folder.path().join("replica");
        let made = replica(&database, &path);
        look(made.database(), "a replica");
        let own = if self.random.chance(50) {
            let offline = made.offline().unwrap();
            world.elsewhere(offline.database(), 3);
            look(offline.database(), "offline");
            offline.close().unwrap();
            Own::Replica(Box::new(made))
        } else {
            made.close().unwrap();
            let copy = options().open(&path).unwrap();
            world.elsewhere(&copy, 3);
            Own::Copy(copy)
        };
        if self.random.chance(80) {
            world.elsewhere(&database, 1);
        }
        look(own.database(), "before the rebase");
        look(&database, "others");
        let theirs = database.read().txid().0 > last;
        let (rebased, own) = match own {
            Own::Replica(replica) => (replica.rebase(), Own::Replica(replica)),
            Own::Copy(copy) => {
                copy.close().unwrap();
                let rebased = rebase_journal(connect(&database), &path);
                (rebased, Own::Copy(options().open(&path).unwrap()))
            }
        };
        match rebased {
            Ok(Rebased { transactions, .. }) => {
                self.rebases.made += u64::from(theirs && transactions > 0);
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                assert!(matches!(own, Own::Copy(_)), "seed {seed}: {error}");
                self.rebases.refused += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "seed {seed}: {error}");
                self.rebases.clashed += 1;
            }
        }
        look(&database, "after the rebase");
        look(own.database(), "after the rebase, on the other side");
        drop(own);
        database.close().unwrap();
        look(&open(&world.disk), "after the rebase and a start");
        self.count += count;
    }
}
