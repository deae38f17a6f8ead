//! What all requests see: the databases, who may ask, and the limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Result, Timestamp};
use annals_replica::{Backup, Local};
use tokio::sync::{Semaphore, watch};

use crate::Role;
use crate::activity::Activity;
use crate::ahead::Ahead;
use crate::buffers::Buffers;
use crate::images::Images;
use crate::keys::Keys;
use crate::long::Long;
use crate::means::Means;
use crate::procedures::Procedures;
use crate::tokens::{Lines, StoredToken, Tokens};
use crate::turns::Turns;

/// What a server takes and waits for, so that no client costs it without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a push.
    pub push: u64,
    /// How long a client may be silent while it sends or receives a body.
    pub silence: Duration,
    /// The longest that a request waits for news.
    pub wait: Duration,
    /// The most connections at a time; further ones wait. So many file descriptors are needed.
    pub connections: usize,
    /// The most memory for answers, bodies, streams and SQL together, in bytes. Connections, threads and the cache of a
    /// database take some more: the guide has a bound for all.
    pub memory: u64,
    /// How long a transaction waits for a backup; then its outcome is unknown, and further ones are refused.
    pub backup: Duration,
    /// How long a root of an image can be read after the last read of it, though it was replaced.
    pub pinned: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (silence, wait) = (Duration::from_secs(30), Duration::from_secs(60));
        let (backup, pinned) = (Duration::from_secs(10), Duration::from_secs(60));
        let (push, memory) = (1 << 30, 128 << 20);
        Self { push, silence, wait, connections: 10_000, memory, backup, pinned }
    }
}

/// How long the tokens that were read are believed, so that a revoked one ends soon.
const BELIEVED: Duration = Duration::from_secs(1);

/// The most requests that write a database at a time; further ones wait.
const WRITERS: usize = 128;

/// What all requests see.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) databases: BTreeMap<String, Arc<Served>>,
    /// What a request without a token may do.
    pub(crate) everyone: Option<Role>,
    /// A token for all databases, which lives as long as the server.
    pub(crate) session: Option<StoredToken>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) limits: Limits,
    /// True if it speaks TLS itself.
    pub(crate) is_tls: bool,
    /// What requests share, as the limits say.
    pub(crate) means: Means,
    /// The threads for long work.
    pub(crate) long: Long,
    /// Why this server refuses all that writes, if it does.
    pub(crate) read_only: Option<String>,
    pub(crate) ending: Ending,
    /// How many readers were cut off because they were too slow.
    pub(crate) slow: Arc<AtomicU64>,
    pub(crate) buffers: Arc<Buffers>,
}

/// The end of a server, which its program begins: see [`Server::ending`](crate::Server::ending).
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<watch::Sender<bool>>);

impl Ending {
    /// Ends those that wait for news, or follow changes, as if nothing new had come. Further requests are answered.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Returns once the server ends.
    pub(crate) async fn begun(&self) {
        // The sender is in this.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}

/// A database that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) local: Arc<Local>,
    /// What is read for the next request for frames.
    pub(crate) ahead: Ahead,
    tokens: Option<Tokens>,
    /// Who may push next, if a client was late too often.
    pub(crate) turns: Turns,
    pub(crate) keys: Arc<Keys>,
    pub(crate) procedures: Arc<Procedures>,
    /// What must have a transaction before it is acknowledged.
    pub(crate) backup: Option<Arc<Backup>>,
    /// The requests that may write at a time: each holds a thread, and readers need some, too.
    pub(crate) writers: Arc<Semaphore>,
    /// What happened when, for the explorer.
    pub(crate) activity: Arc<Activity>,
    /// The file, if it may be examined.
    pub(crate) path: Option<PathBuf>,
    /// The folder of the file, as messages may name it.
    pub(crate) folders: Vec<String>,
    /// The roots of its image that lazy replicas read.
    pub(crate) images: Arc<Images>,
    /// The tokens as they were read, and when.
    known: Mutex<Option<(Duration, Vec<StoredToken>)>>,
    /// The lines of the file of tokens that the log says aren't tokens.
    told: Mutex<Vec<usize>>,
}

impl Served {
    pub(crate) fn new(local: Local, tokens: Option<Tokens>) -> Self {
        Self {
            local: Arc::new(local),
            ahead: Ahead::default(),
            tokens,
            turns: Turns::default(),
            keys: Arc::default(),
            procedures: Arc::default(),
            backup: None,
            writers: Arc::new(Semaphore::new(WRITERS)),
            activity: Arc::default(),
            path: None,
            folders: Vec::new(),
            images: Arc::default(),
            known: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Returns the role that the token with a hash has for this database.
    pub(crate) fn role_of(&self, hash: &str, time: Timestamp) -> Result<Option<Role>> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let now = SystemClock.elapsed();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(read, _)| now.saturating_sub(*read) >= BELIEVED) {
            *known = Some((now, self.read(tokens)?));
        }
        let known = known.iter().flat_map(|(_, list)| list);
        Ok(known.filter_map(|stored| stored.role_of_hash(hash, time)).max())
    }

    /// Reads the tokens. A damaged line gives no right, and takes none from the other lines; the log says which it is.
    fn read(&self, tokens: &Tokens) -> Result<Vec<StoredToken>> {
        let Lines { tokens: all, wrong } = tokens.read()?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != wrong {
            for line in &wrong {
                let path = tokens.path().display().to_string();
                tracing::error!(
                    path,
                    line,
                    "this line isn't a token: it gives no right; remove it"
                );
            }
            *told = wrong;
        }
        Ok(all)
    }
}
