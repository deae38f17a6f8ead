//! `annals archive`: uploads a database to an object store, once or continuously.

use std::path::PathBuf;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{ErrorKind, Reader, Result, Retention};
use annals_replica::archive::{Archiving, Bucket, Uploaded, Uploader};
use annals_replica::frames::Source;
use clap::Args;
use serde_json::json;

use crate::output::{Output, count, plain};
use crate::{Outcome, progress};

/// Upload a database to an archive
///
/// An archive is in an object store, or in a folder, and has all of the history: `annals restore` makes a database of any
/// moment from it. Only what is new is uploaded, and only what is on permanent storage. Programs may write FILE meanwhile.
///
/// With --follow it continues until it is stopped: then at most the commits of one interval are missing in the archive. A
/// second uploader to the same archive ends the first one, with an error; two never mix.
///
/// After `annals erase` of FILE, what was written again is uploaded, and then the old objects are removed from the archive;
/// so nothing that was erased can be restored. (Versions that the store itself keeps of removed objects are not: end that
/// there.)
///
/// The archive keeps all history, if no rule is given. With --keep-days, --keep-bytes or --keep-transactions it forgets
/// history that none of them asks for, in pieces: up to a file of the journal that begins with the state, which `annals
/// retain` and programs with rules of retention make. Every moment after that can be restored.
///
/// URL is file:///FOLDER, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH. Keys and addresses are in the usual
/// variables: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, and so on. The store must create
/// an object only if it isn't there: `annals check URL --race` shows whether it does.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals archive people.annals s3://backups/people --follow
  annals archive people.annals file:///backups/people")]
pub(crate) struct Arguments {
    /// The database
    file: PathBuf,
    /// The archive; it is begun if it is empty
    url: String,
    /// Continue to upload new commits, until it is stopped
    #[arg(long)]
    follow: bool,
    /// How many seconds of commits may be missing in the archive, with --follow
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Keep at least the commits of this many days in the archive
    #[arg(long, alias = "days", value_name = "NUMBER")]
    keep_days: Option<u32>,
    /// Keep at least this many bytes of history: a number, or one with KiB, MiB, GiB or TiB after it
    #[arg(long, alias = "bytes", value_name = "SIZE", value_parser = super::size)]
    keep_bytes: Option<u64>,
    /// Keep at least this many transactions
    #[arg(long, alias = "transactions", value_name = "NUMBER")]
    keep_transactions: Option<u64>,
    /// Upload no images: then whoever reads the archive without restoring it replays the journal
    #[arg(long)]
    no_images: bool,
    /// If the archive has another history of this database, put this one in its place: the other is removed once this
    /// one is there
    #[arg(long)]
    replace: bool,
    /// Print each report as one JSON object
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "write a number of seconds, 0.05 to 86400".to_owned())
}

/// Opens file and archive.
fn open(arguments: &Arguments, replaces: bool) -> Result<(Reader, Source, Uploader)> {
    let day = Duration::from_secs(24 * 60 * 60);
    let rules = Retention {
        bytes: arguments.keep_bytes,
        time: arguments.keep_days.map(|days| day * days),
        transactions: arguments.keep_transactions,
    };
    let how = Archiving { rules, has_images: !arguments.no_images, replaces };
    let reader = progress::options().hard_only(true).open_read_only(&arguments.file)?;
    let source = Source::of_reader(reader.clone());
    let uploader = Uploader::open_with(Bucket::open(&arguments.url)?, &source, how)?;
    Ok((reader, source, uploader))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let (mut reader, mut source, mut uploader) = open(arguments, arguments.replace)?;
    let mut output = Output::new();
    let mut tell = |uploaded: &Uploaded, uploader: &Uploader| {
        let end = uploader.manifest().end().map_or(0, |end| end.txid.0);
        let Uploaded { transactions, bytes, objects } = *uploaded;
        output.line(&match arguments.json {
            true => json!({ "url": arguments.url, "transactions": transactions, "bytes": bytes, "objects": objects,
                "txid": end })
            .to_string(),
            false => plain(&format!(
                "{}: uploaded {}, {bytes} bytes, up to transaction {end}",
                arguments.url,
                count(transactions, "transaction")
            )),
        })?;
        output.flush()
    };
    let uploaded = uploader.upload(&source)?;
    tell(&uploaded, &uploader)?;
    if !arguments.follow {
        return Ok(Outcome::Done);
    }
    loop {
        SystemClock.pause(Duration::from_secs_f64(arguments.interval));
        match reader.pull().and_then(|_| uploader.upload(&source)) {
            Ok(uploaded) if uploaded.bytes > 0 => tell(&uploaded, &uploader)?,
            Ok(_) => {}
            // It may come back; what is missing is uploaded then.
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                crate::notes::note(&error.to_string());
            }
            // Values were erased: the file is another, and so is its history.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::Forgotten | ErrorKind::Diverged
                ) =>
            {
                (reader, source, uploader) = open(arguments, false)?;
                tell(&uploader.upload(&source)?, &uploader)?;
            }
            Err(error) => return Err(error),
        }
    }
}
