//! Logs that many machines share, where a command works as a node of one.

use std::path::PathBuf;
use std::sync::Arc;

use annals::Result;
use annals_replica::SharedLog;
use annals_replica::shared_log::jetstream;
use clap::Args;

use super::{Access, Authority};
use crate::notes;

/// How to reach the servers of a log, and how their settings are checked.
#[derive(Debug, Args)]
pub(crate) struct Servers {
    /// The monitor of each of the log's servers, http://HOST:8222: there it is checked that they flush what they acknowledge
    #[arg(long, value_name = "URL")]
    monitor: Vec<String>,
    /// Use the log whatever the settings of its stream and servers are: acknowledged transactions may be lost
    #[arg(long)]
    trust_server: bool,
    /// A file with credentials for the log's servers, as `nsc` writes it
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
}

impl Servers {
    /// Returns them as the library takes them.
    pub(crate) fn access(&self, authority: &Authority) -> jetstream::Access {
        jetstream::Access {
            credentials: self.creds.clone(),
            authority: authority.path(),
            monitors: self.monitor.clone(),
            trust_server: self.trust_server,
        }
    }
}

/// The log of which a command is a node.
#[derive(Debug, Args)]
pub(crate) struct Membership {
    /// Work as a node of this shared log, nats://HOST:PORT/STREAM, which `annals log create` makes: FILE is a cache of it, which
    /// is made if it isn't there
    #[arg(long, value_name = "URL")]
    pub(crate) log: Option<String>,
    /// Where the archive of the log is: transactions that the log has removed are read there
    #[arg(long, value_name = "URL", requires = "log")]
    log_archive: Option<String>,
    #[command(flatten)]
    servers: Servers,
}

impl Membership {
    /// Prepares a connection to the log of a URL.
    pub(crate) fn connect(&self, url: &str, access: &Access) -> Result<Arc<SharedLog>> {
        let mut log = SharedLog::with(url, self.servers.access(access.authority()))?;
        if let Some(archive) = &self.log_archive {
            log = log.archive(access.connect(archive)?);
        }
        Ok(Arc::new(log))
    }
}

/// Reports messages that don't count, for any node.
pub(crate) fn tell_void(log: &SharedLog, told: &mut u64) {
    let status = log.counts();
    for void in status.reasons.iter().filter(|void| void.sequence > *told) {
        notes::note(&format!("message {} of the log is void: {}", void.sequence, void.reason));
    }
    *told = status.reasons.iter().map(|void| void.sequence).fold(*told, u64::max);
}
