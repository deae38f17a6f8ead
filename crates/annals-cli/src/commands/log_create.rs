//! `annals log create`: makes a log that many machines share.

use std::path::PathBuf;

use annals::Result;
use annals_replica::SharedLog;
use annals_replica::shared_log::jetstream::JetStream;
use clap::Args;

use crate::Outcome;
use crate::output::{Output, count};
use crate::remote::Authority;
use crate::remote::shared_log::Servers;

/// Create a shared log: a stream of NATS JetStream that holds the journal of one database for many machines
///
/// The stream keeps all messages, in files, on as many servers as --replicas says. Nodes are `annals shell FILE --log URL` and
/// `annals serve FILE --log URL`; the first one begins the journal.
///
/// Servers must flush what they acknowledge: `jetstream { sync_interval: "always" }`, with the quotes. That is read from the
/// monitor of each server. Without monitors, or with fewer than three replicas, only --trust-server creates the stream.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals log create nats://127.0.0.1:4222/orders --replicas 3 \\
    --monitor http://127.0.0.1:8222 --monitor http://127.0.0.1:8223 --monitor http://127.0.0.1:8224")]
pub(crate) struct Arguments {
    /// The URL of the stream: nats://HOST:PORT/STREAM, with several hosts separated by commas, or tls://..
    url: String,
    /// How many servers have each message
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    replicas: usize,
    /// Fill the log with the history of this database; without it the first node begins a new one
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    authority: Authority,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    let access = arguments.servers.access(&arguments.authority);
    let stream = JetStream::new(&arguments.url, access.clone())?;
    stream.create(arguments.replicas)?;
    let replicas = count(arguments.replicas, "replica");
    let mut output = Output::new();
    output.line(&format!(
        "created {} with {replicas}",
        annals_replica::shared_log::Log::name(&stream)
    ))?;
    if let Some(file) = &arguments.from {
        let log = SharedLog::with(&arguments.url, access)?;
        let sent = log.begin_with(file)?;
        let txid = sent.end.txid;
        output.line(&format!(
            "appended {} transactions, up to transaction {txid}",
            sent.transactions
        ))?;
    }
    output.flush().map(|()| Outcome::Done)
}
