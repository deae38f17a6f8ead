//! An archive in an S3 server on this machine: the rate of an upload beside that of bare puts of the same bytes to the
//! same server, one after the other as an upload makes them, and a restore.
//!
//! The server is versitygw, which is found in the path or where Go installs it. Then the same rows are written to Annals and
//! to SQLite with Litestream, while they are uploaded there.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

mod beside;
mod gateway;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use annals::Options;
use annals_replica::archive::{Archive, Archiving, Bucket, Uploader, restore};
use annals_replica::frames::Source;
use annals_replica::lazy::testing::create;
use object_store::{ObjectStore as _, PutMode, PutOptions, PutPayload};

use self::gateway::Gateway;
use crate::engines::Failure;
use crate::figures::{Figure, Measured};

/// How many bytes of journal a row of the database takes, about.
const ROW: u64 = 110;

/// The database.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// MiB of its journal.
    #[arg(long, default_value_t = 1024)]
    pub(crate) mib: u64,
    /// How many seconds rows are written beside Litestream; 0: not at all.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Runs the turns.
pub(crate) fn run(load: &Load, turns: usize) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let database = create(&folder.path().join("a.annals"), (load.mib << 20) / ROW);
    let gateway = Gateway::start(folder.path())?;
    // It chooses what TLS is done with, which clients of object stores need.
    Bucket::open("file:///")?;
    let source = Source::new(database);
    let mut measured = Measured::default();
    for turn in 0..turns {
        take_turn(folder.path(), &gateway, &source, turn, &mut measured)?;
    }
    if load.seconds > 0 {
        beside::run(folder.path(), &gateway, load.seconds, &mut measured)?;
    }
    Ok(measured.medians())
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn take_turn(
    folder: &Path,
    gateway: &Gateway,
    source: &Source,
    turn: usize,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let bucket = || -> Result<Bucket, Failure> {
        let store = object_store::prefix::PrefixStore::new(gateway.store()?, format!("t{turn}"));
        Ok(Bucket::with(Arc::new(store), &gateway.endpoint())?)
    };
    let how = Archiving { has_images: false, ..Archiving::default() };
    let begun = Instant::now();
    let mut uploader = Uploader::open_with(bucket()?, source, how)?;
    let uploaded = uploader.upload(source)?;
    let took = begun.elapsed().as_secs_f64();
    let rate = uploaded.bytes as f64 / 1e6 / took;
    let bare = bare(gateway, turn, uploader.manifest().ranges.iter().map(|range| range.bytes))?;
    measured.add("Annals", ("upload", "MB/s"), rate);
    measured.add("Annals", ("upload", "objects"), uploaded.objects as f64);
    measured.add("bare puts", ("upload", "MB/s"), bare);
    measured.add("Annals", ("upload", "of the bare rate"), rate / bare);
    let path = folder.join("restored.annals");
    let begun = Instant::now();
    restore(Archive::new(bucket()?), &path, None, &Options::new())?;
    let took = begun.elapsed().as_secs_f64();
    measured.add("Annals", ("restore", "s"), took);
    measured.add("Annals", ("restore", "MB/s"), uploaded.bytes as f64 / 1e6 / took);
    for name in ["restored.annals", "restored.annals-image"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    std::fs::remove_dir_all(folder.join(format!("s3/bucket/t{turn}")))?;
    Ok(())
}

/// Puts as many objects of these sizes; returns MB a second.
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn bare(gateway: &Gateway, turn: usize, sizes: impl Iterator<Item = u64>) -> Result<f64, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (store, mut sum) = (gateway.store()?, 0);
    let begun = Instant::now();
    for (number, size) in sizes.enumerate() {
        let bytes = vec![number.to_le_bytes()[0]; usize::try_from(size)?];
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let path = object_store::path::Path::from(format!("t{turn}/bare/{number}"));
        runtime.block_on(store.put_opts(&path, PutPayload::from(bytes), options))?;
        sum += size;
    }
    Ok(sum as f64 / 1e6 / begun.elapsed().as_secs_f64())
}
