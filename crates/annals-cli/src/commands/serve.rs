//! `annals serve`: serves databases over HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Database, Error, ErrorKind, Result};
use annals_replica::{Backup, Connection, Node, Patience, Replica};
use annals_server::{Identity, Limits, Listening, NewToken, Role, Server, Tokens};
use clap::Args;

use crate::output::Output;
use crate::remote::Access;
use crate::remote::log::Log;
use crate::remote::shared_log::{Membership, tell_void};
use crate::{Outcome, notes, progress, remote};

/// How long the server that is followed is asked to wait for news.
const WAIT: Duration = Duration::from_secs(30);
/// The pause after it couldn't be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// The least memory for requests, in bytes: with less none could be answered.
const LEAST_MEMORY: u64 = 4 << 20;

/// Serve databases over HTTP
///
/// The URL of a database is `http://HOST:PORT/v1/NAME`, where NAME is the file's name without its extension. Replicas
/// pull from it and push to it, every other command that reads takes the URL where it takes a file, and rows, history
/// and changes are there as JSON. With --create, a file that doesn't exist is created; a replica and a node are always.
///
/// Every request needs a token. `annals token add` stores one for a file, with a role; if none of the files has any, a
/// random one is printed, which ends with the server. --no-token opens reading and writing to every program on this
/// machine. Without a certificate the server listens on loopback only. Requests must name it by its address, as
/// localhost, or by a name that --host says.
///
/// --backup names another file, or the URL of a copy on another server: a transaction is acknowledged, and seen, only when
/// that has it on permanent storage, too. While it can't be reached, writing is refused and reading goes on. --stdio
/// speaks HTTP on standard input and output in place of listening: the other end of a URL ssh://HOST/PATH.
///
/// It prints `listening on http://ADDR` once it answers. SIGTERM or Ctrl-C ends it, after the requests that are being
/// answered. It needs no help after kill -9: a push that was acknowledged is on permanent storage.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals serve library.annals --listen 127.0.0.1:8080
  annals serve library.annals --backup /mnt/other/library.annals
  annals serve library.annals --no-token & curl http://127.0.0.1:8080/v1/library/t/person/0")]
pub(crate) struct Arguments {
    /// The databases
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Where to listen; with port 0 at a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Serve one connection on standard input and output, to whoever has them, and end with it
    #[arg(long, conflicts_with_all = ["listen", "cert", "no_token"])]
    stdio: bool,
    /// Acknowledge a transaction only when this has it, too: a file, which is created, or a URL of a copy that another
    /// server serves, with --token for it, of role admin
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["follow", "log"])]
    backup: Option<PathBuf>,
    /// How many seconds a transaction waits for the backup
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().backup.as_secs())]
    backup_timeout: u64,
    /// Let everybody on this machine read and write, without a token
    #[arg(long)]
    no_token: bool,
    /// Create files that don't exist
    #[arg(long)]
    create: bool,
    /// Refuse all that writes, and open the files for reading: another program may write them meanwhile, and what it
    /// commits is served
    #[arg(long, conflicts_with_all = ["create", "backup"])]
    read_only: bool,
    /// Follow this database: FILE is or becomes a replica of it, to be read from here, too. Writing is refused, and
    /// left to the server that is followed
    #[arg(long, value_name = "URL", conflicts_with = "log")]
    follow: Option<String>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    membership: Membership,
    /// The certificates for TLS, as PEM, the server's own first; without them the server listens on loopback only
    #[arg(long, value_name = "PEM", requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "PEM", requires = "cert")]
    key: Option<PathBuf>,
    /// Answer requests for this host, too, besides localhost and addresses
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Answer requests of pages from this origin, too, as https://example.org
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// The most bytes of a push
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().push)]
    max_push: u64,
    /// The most connections at a time; further ones wait
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// The most memory for requests and their answers, SQL included, in bytes; the cache of a database comes on top
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().memory)]
    memory: u64,
    /// How many seconds a client may be silent in the middle of a request or an answer
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().silence.as_secs())]
    timeout: u64,
    #[command(flatten)]
    log: Log,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    arguments.log.start();
    annals::storage::raise_most_open_files();
    annals::storage::return_freed_memory();
    let alone = [
        ("--follow", arguments.follow.is_some()),
        ("--backup", arguments.backup.is_some()),
        ("--log", arguments.membership.log.is_some()),
    ];
    if let Some((option, _)) = alone.iter().find(|(_, is_given)| *is_given)
        && arguments.files.len() > 1
    {
        let message = format!("{option} is about one database: start a server for each FILE");
        return Err(Error::invalid(message));
    }
    let mut open = Open { server: configured(arguments)?, ..Open::default() };
    for path in &arguments.files {
        open.add(path, arguments)?;
    }
    let mut token = None;
    if arguments.no_token || arguments.stdio {
        open.server = open.server.open_to_all();
    } else if !open.has_tokens {
        let new = NewToken::random(Role::Admin, None);
        open.server = open.server.session(new.stored);
        token = Some(new.token);
    }
    let served = match arguments.stdio {
        true => speak(open.server),
        false => serve(open.server, &arguments.listen, token),
    };
    open.backup.iter().for_each(|backup| backup.end());
    let closed = open.databases.into_iter().try_for_each(Database::close);
    served.and(closed).map(|()| Outcome::Done)
}

/// Returns a server without databases, as the options say.
fn configured(arguments: &Arguments) -> Result<Server> {
    let mut server = Server::new().limits(Limits {
        push: arguments.max_push,
        connections: arguments.max_connections.max(1),
        memory: arguments.memory.max(LEAST_MEMORY),
        silence: Duration::from_secs(arguments.timeout.max(1)),
        backup: Duration::from_secs(arguments.backup_timeout),
        ..Limits::default()
    });
    for host in &arguments.host {
        server = server.host(host);
    }
    for origin in &arguments.allow_origin {
        server = server.origin(origin);
    }
    if let Some(url) = &arguments.follow {
        server = server.read_only(format!("it follows {url}; write there"));
    } else if arguments.read_only {
        server = server.read_only("it was started with --read-only");
    }
    if let (Some(cert), Some(key)) = (&arguments.cert, &arguments.key) {
        let identity = Identity::read(cert, key);
        server = server.tls(identity.map_err(|error| Error::invalid(error.to_string()))?);
    }
    Ok(server)
}

/// A server with open databases.
#[derive(Default)]
struct Open {
    server: Server,
    databases: Vec<Database>,
    backup: Option<Arc<Backup>>,
    has_tokens: bool,
}

impl Open {
    /// Opens a database, and adds it.
    fn add(&mut self, path: &Path, arguments: &Arguments) -> Result<()> {
        let tokens = Tokens::of(path)?;
        self.has_tokens |= !tokens.list()?.is_empty();
        if let Some(url) = &arguments.membership.log {
            return self.join(url, path, tokens, arguments);
        }
        let (name, server) = (name(path)?, std::mem::take(&mut self.server));
        if arguments.read_only && arguments.follow.is_none() {
            // What was served, or pulled by a replica, is never undone: so soft commits, which a power cut may lose, aren't shown.
            let reader = progress::options().hard_only(true).open_read_only(path)?;
            reader.findings().iter().for_each(|finding| notes::note(finding));
            self.server = server.reader(name, reader, Some(tokens))?.file(name, path)?;
            return Ok(());
        }
        let (server, database) = match &arguments.follow {
            Some(url) => {
                let replica = follow(url, path, &arguments.access)?;
                let database = replica.database().clone();
                (server.follower(name, replica, Some(tokens))?, database)
            }
            None => {
                let opened = progress::options().create(arguments.create).open(path);
                let database = opened.map_err(|error| match error.kind() {
                    ErrorKind::NotFound => {
                        Error::new(error.kind(), format!("{error}; --create makes a new database"))
                    }
                    _ => error,
                })?;
                (server.database_with(name, database.clone(), tokens)?, database)
            }
        };
        notes::tell_recovery(&database);
        self.server = server.file(name, path)?;
        self.databases.push(database.clone());
        if let Some(to) = &arguments.backup {
            let connection: Arc<dyn Connection> = match remote::url(to) {
                Some(url) => arguments.access.connect(url)?,
                None => {
                    let (file, connection) = Backup::file(&database, to)?;
                    // It is closed after the one that it is a backup of.
                    self.databases.push(file);
                    Arc::new(connection)
                }
            };
            let backup = Backup::start(&database, path, connection)?;
            if let Err(error) = backup.wait(Duration::from_secs(arguments.backup_timeout)) {
                notes::note(&format!("{error}; until then writing is refused"));
            }
            self.server = std::mem::take(&mut self.server).backup(name, Arc::clone(&backup))?;
            self.backup = Some(backup);
        }
        Ok(())
    }

    /// Opens a node of a shared log, and adds it.
    fn join(
        &mut self,
        url: &str,
        path: &Path,
        tokens: Tokens,
        arguments: &Arguments,
    ) -> Result<()> {
        let (name, node) = (name(path)?, join(url, path, arguments)?);
        self.databases.push(node.replica().database().clone());
        let server = std::mem::take(&mut self.server);
        self.server = server.node(name, node, Some(tokens))?.file(name, path)?;
        Ok(())
    }
}

/// Opens a replica, which follows another server until the program ends.
fn follow(url: &str, path: &Path, access: &Access) -> Result<Arc<Replica>> {
    let options = progress::options();
    let replica = Replica::connect_with(access.connect(url)?, path, &options, Patience::default())?;
    let replica = Arc::new(replica);
    let following = Arc::clone(&replica);
    keep_up(move |wait| following.pull_for(wait).map(drop))?;
    Ok(replica)
}

/// Opens a node of a shared log, which reads that until the program ends.
fn join(url: &str, path: &Path, arguments: &Arguments) -> Result<Arc<Node>> {
    let log = arguments.membership.connect(url, &arguments.access)?;
    let (options, patience) = (progress::options(), Patience::default());
    let replica = Replica::connect_with(Arc::clone(&log), path, &options, patience)?;
    let node = Arc::new(Node::new(replica));
    let (following, mut told) = (Arc::clone(&node), 0);
    keep_up(move |wait| {
        let pulled = following.replica().pull_for(wait);
        tell_void(&log, &mut told);
        pulled.map(drop)
    })?;
    Ok(node)
}

/// Pulls until the database is closed; says once what is wrong, however long it lasts.
fn keep_up(mut pull: impl FnMut(Duration) -> Result<()> + Send + 'static) -> Result<()> {
    let following = std::thread::Builder::new().name("annals-follow".to_owned()).spawn(move || {
        let mut told = None;
        loop {
            // After an error it is known at once that it is over.
            let wait = if told.is_none() { WAIT } else { Duration::ZERO };
            let error = match pull(wait) {
                Ok(()) => None,
                // The server ends.
                Err(error) if error.kind() == ErrorKind::Closed => return,
                Err(error) => Some(error.to_string()),
            };
            match &error {
                Some(error) if told.as_ref() != Some(error) => notes::note(error),
                None if told.is_some() => notes::note("it can be followed again"),
                _ => {}
            }
            if error.is_some() {
                SystemClock.pause(PAUSE);
            }
            told = error;
        }
    });
    following.map(drop).map_err(|error| Error::io("cannot start a thread", error))
}

/// Returns the name of a database in URLs.
pub(super) fn name(path: &Path) -> Result<&str> {
    let name = path.file_stem().and_then(std::ffi::OsStr::to_str);
    name.ok_or_else(|| Error::invalid(format!("{}: has no name for a URL", path.display())))
}

/// Serves standard input and output.
fn speak(server: Server) -> Result<()> {
    let io = |error| Error::io("cannot serve standard input and output", error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(io)?;
    let spoken = runtime.block_on(async {
        let end = end().map_err(io)?;
        let stream = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
        server.speak(stream, end).await.map_err(io)
    });
    // A thread may still read standard input.
    runtime.shutdown_background();
    spoken
}

fn serve(server: Server, address: &str, token: Option<String>) -> Result<()> {
    run_until_ended(server, address, |listening| {
        let mut output = Output::new();
        if let Some(token) = token {
            output.line(&format!("token: {token}"))?;
        }
        output.line(&format!("listening on {}", listening.url()))?;
        output.flush()
    })
}

/// Listens, says so by `begun`, and serves until the program is asked to end.
pub(super) fn run_until_ended(
    server: Server,
    address: &str,
    begun: impl FnOnce(&Listening) -> Result<()>,
) -> Result<()> {
    let io = |error| Error::io(format!("cannot listen at {address}"), error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(io)?;
    runtime.block_on(async {
        let end = end().map_err(io)?;
        let listening = server.listen(address).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Error::new(ErrorKind::Invalid, error.to_string())
            }
            _ => io(error),
        })?;
        begun(&listening)?;
        listening.run(end).await.map_err(io)
    })
}

/// Returns a future that ends when the program is asked to.
#[cfg(unix)]
fn end() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Returns a future that ends when the program is asked to.
#[cfg(not(unix))]
fn end() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
