//! `annals log trim`: removes messages from a log once an archive has them.

use annals::Result;
use annals_replica::SharedLog;
use clap::Args;

use crate::Outcome;
use crate::output::{Output, count, plain};
use crate::remote::Access;
use crate::remote::shared_log::Servers;

/// Remove messages from a shared log that an archive has
///
/// A message leaves the log only if the archive has the same transactions: each byte of both is read and compared. Nodes that
/// lack what was removed, and new ones, read it from the archive: start them with --log-archive.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals log trim nats://127.0.0.1:4222/orders --archive s3://backups/orders --keep 10000 \\
    --monitor http://127.0.0.1:8222 --monitor http://127.0.0.1:8223 --monitor http://127.0.0.1:8224")]
pub(crate) struct Arguments {
    /// The URL of the stream: nats://HOST:PORT/STREAM
    url: String,
    /// The archive: file:///FOLDER, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH
    #[arg(long, value_name = "URL")]
    archive: String,
    /// Leave so many messages in the log, for nodes that are a little late
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    keep: u64,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let log =
        SharedLog::with(&arguments.url, arguments.servers.access(arguments.access.authority()))?;
    let archive = arguments.access.connect(&arguments.archive)?;
    let trimmed = log.trim(&*archive, arguments.keep)?;
    let mut output = Output::new();
    let first = trimmed.first;
    output.line(&plain(&format!(
        "removed {}; the log begins with message {first}",
        count(trimmed.removed, "message")
    )))?;
    output.flush().map(|()| Outcome::Done)
}
