//! Copies of a database that keep its history.

use std::path::Path;
use std::sync::Arc;

use annals::storage::{Access, Directory, MemoryDirectory};
use annals::{Database, Reader};
use annals_simulated::SimulatedDisk;
use annals_tools::salvage_in;

use super::answers::{Answers, Asked, Topics};
use super::maintenance::{clock, options};
use crate::history_model::NAME;

const COPY: &str = "copy";

/// A copy, which may be one that can't be written.
pub(super) enum Copied {
    Database(Database),
    Reader(Reader),
}

impl Copied {
    pub(super) fn ask(&self, topics: &Topics) -> Answers {
        match self {
            Self::Database(database) => Asked::Database(database).ask(topics),
            Self::Reader(reader) => Asked::Reader(reader).ask(topics),
        }
    }
}

/// Makes a copy in one of six ways; those that need files have a new folder for them.
pub(super) fn copied(database: &Database, disk: &SimulatedDisk, way: u64, folder: &Path) -> Copied {
    database.hard_checkpoint().unwrap();
    let (from, to) = (Arc::new(disk.clone()) as _, Arc::new(MemoryDirectory::new()));
    let into = || Arc::clone(&to) as Arc<dyn Directory>;
    match way {
        0 => drop(annals_tools::backup_in(&options(), from, NAME, into(), COPY, clock()).unwrap()),
        1 => {
            let mut push = annals_tools::push_in(&options(), from, NAME, into(), COPY, clock());
            push.bring_up().unwrap();
            push.close().unwrap();
        }
        2 => drop(salvage_in(&options(), disk, NAME, into(), COPY, clock()).unwrap()),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        3 => return archived(database, folder),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        4 => return converted(disk, folder, true),
        _ => return converted(disk, folder, false),
    }
    Copied::Database(options().open_in(into(), COPY, clock()).unwrap())
}

/// Writes it to an archive, and restores it from there.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn archived(database: &Database, folder: &Path) -> Copied {
    use annals_replica::archive::{self, Archive, Bucket, Uploader};

    let store = Arc::new(object_store::memory::InMemory::new());
    let bucket = || Bucket::with(Arc::clone(&store) as _, "memory").unwrap();
    let source = annals_replica::frames::Source::new(database.clone());
    Uploader::open(bucket(), &source).unwrap().upload(&source).unwrap();
    let path = folder.join(COPY);
    archive::restore(Archive::new(bucket()), &path, None, &options()).unwrap();
    Copied::Database(options().open(path).unwrap())
}

/// Converts its files.
fn converted(disk: &SimulatedDisk, folder: &Path, compress: bool) -> Copied {
    for name in disk.list().unwrap() {
        let storage = disk.open(&name, Access::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(storage.len().unwrap()).unwrap()];
        storage.read_at(0, &mut bytes).unwrap();
        std::fs::write(folder.join(&name), bytes).unwrap();
    }
    let path = folder.join(COPY);
    annals_tools::convert(&options(), folder.join(NAME), &path, compress).unwrap();
    Copied::Reader(options().open_read_only(&path).unwrap())
}
