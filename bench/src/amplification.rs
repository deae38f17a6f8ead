//! Write amplification: the journal's bytes for each committed byte, and those that backfills write to the image
//! meanwhile.

use std::path::{Path, PathBuf};

use annals::storage::{Access, Directory as _, FileDirectory};
use annals::{BackfillMode, Options};

use crate::disk;
use crate::engines::annals::Annals;
use crate::engines::{self, Failure, Shape, Table as _};
use crate::figures::{Figure, Measured, settle};
use crate::random::Random;

/// Rows, and updates, of a transaction.
const AT_ONCE: u64 = 1_000;

/// The committed changes.
#[derive(clap::Args)]
pub(crate) struct Growth {
    /// Rows that are loaded, with an index.
    #[arg(long, default_value_t = 10_000_000, value_parser = engines::count())]
    pub(crate) rows: u64,
    /// Random rows that are updated then.
    #[arg(long, default_value_t = 10_000_000, value_parser = engines::count())]
    pub(crate) updated: u64,
}

/// The bytes written so far.
#[derive(Clone, Copy, Default)]
struct Sum {
    journal: u64,
    image: u64,
    backfills: u64,
    /// The bytes that the process has written to all files, if the operating system counts that.
    process: Option<u64>,
}

/// Follows an image: which roots it got, and how many bytes for them.
struct Follower {
    path: PathBuf,
    /// The number of the newest root seen.
    newest: u64,
    bytes: u64,
}

/// Loads, updates and closes.
pub(crate) fn run(growth: &Growth) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let mut follower = Follower { path: Annals::image(folder.path()), newest: 0, bytes: 0 };
    let mut measured = Measured::default();
    settle();
    let mut items = Annals::connect(folder.path(), &Options::new())?;
    let first = sum(items.position(), &follower);

    for begin in (0..growth.rows).step_by(usize::try_from(AT_ONCE)?) {
        let ids = begin..growth.rows.min(begin + AT_ONCE);
        items.insert(ids.clone(), &Shape::Named.names(ids))?;
        follower.look()?;
    }
    let loaded = sum(items.position(), &follower);
    add("rows loaded, by 1,000", (first, loaded), &mut measured);

    let mut random = Random::new(growth.rows);
    for begin in (0..growth.updated).step_by(usize::try_from(AT_ONCE)?) {
        let count = AT_ONCE.min(growth.updated - begin);
        let ids: Vec<_> = (0..count).map(|_| random.below(growth.rows)).collect();
        items.update(&ids, u32::try_from(begin / AT_ONCE)? + 1)?;
        follower.look()?;
    }
    let updated = sum(items.position(), &follower);
    add("random updates, by 1,000", (loaded, updated), &mut measured);

    let end = items.position();
    items.backfill(BackfillMode::Passive)?;
    follower.look()?;
    Box::new(items).close()?;
    follower.look_at_copy()?;
    let closed = sum(end, &follower);
    add("in all, closed", (first, closed), &mut measured);
    Ok(measured.medians())
}

fn sum(journal: u64, follower: &Follower) -> Sum {
    let (image, backfills) = (follower.bytes, follower.newest);
    Sum { journal, image, backfills, process: disk::written() }
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn add(phase: &'static str, (before, after): (Sum, Sum), measured: &mut Measured) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut add = |unit, value: f64| measured.add("Annals", (phase, unit), value);
    let journal = after.journal - before.journal;
    let image = after.image - before.image;
    add("MiB of journal", mib(journal));
    add("MiB to the image", mib(image));
    add("backfills", (after.backfills - before.backfills) as f64);
    add("bytes to the image for each of the journal", image as f64 / journal as f64);
    if let (Some(before), Some(after)) = (before.process, after.process) {
        add("MiB written by the process", mib(after - before));
        let each = (after - before) as f64 / journal as f64;
        add("bytes written by the process for each of the journal", each);
    }
}

/// Where the slots of roots are in an image, and their second copies, which are written last.
const SLOTS: [u64; 2] = [4096, 8192];
const SECOND_COPY: u64 = 1024;
/// Where a root has its number, and how many bytes its backfill wrote.
const NUMBER: usize = 8;
const BYTES: usize = 96;
const LEN: usize = 104;

impl Follower {
    /// Finds the present roots. Must be called before two backfills more are over.
    fn look(&mut self) -> Result<(), Failure> {
        let mut found = roots(&self.path)?;
        found.sort_unstable();
        found.retain(|(number, _)| *number > self.newest);
        for (number, bytes) in found {
            if number != self.newest + 1 {
                return Err(format!("root {} of the image wasn't seen", self.newest + 1).into());
            }
            (self.newest, self.bytes) = (number, self.bytes + bytes);
        }
        Ok(())
    }

    /// Finds the copy without gaps that closing makes of a file with many, with roots of its own.
    fn look_at_copy(&mut self) -> Result<(), Failure> {
        let newest = roots(&self.path)?.into_iter().map(|(number, _)| number).max();
        if newest.is_some_and(|newest| newest > self.newest) {
            self.bytes += std::fs::metadata(&self.path)?.len();
        }
        Ok(())
    }
}

/// Returns the numbers of both roots of an image, as far as there are, and the bytes that they wrote.
fn roots(path: &Path) -> Result<Vec<(u64, u64)>, Failure> {
    if !path.try_exists()? {
        return Ok(Vec::new());
    }
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("the image has no name")?;
    let directory = FileDirectory::new(path.parent().unwrap_or(Path::new("")));
    let image = directory.open(name, Access::Read)?;
    let mut roots = Vec::new();
    for slot in SLOTS {
        let mut root = [0; LEN];
        if image.read_at(slot + SECOND_COPY, &mut root)? == LEN && root.starts_with(b"ROOT") {
            let number = |at| u64::from_le_bytes(std::array::from_fn(|byte| root[at + byte]));
            roots.push((number(NUMBER), number(BYTES)));
        }
    }
    Ok(roots)
}
