//! A stream of NATS JetStream as a log.
//!
//! The client runs on threads of its own; all calls block. `address` reads URLs, `api` speaks the protocol, `servers` asks
//! single servers, `notices` knows when messages were stored, `settings` refuses those that would lose transactions.

mod address;
mod api;
mod notices;
mod servers;
mod settings;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use annals::{Error, ErrorKind, Result};
use annals_storage::{Clock as _, SystemClock};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio::task::unconstrained;

pub use self::address::Access;
use self::address::Address;
use self::api::Failure;
use self::notices::Notices;
use self::settings::Info;
use super::log::{Appended, Extent, Log, Message, Replicas, Source};
use crate::Patience;
use crate::redact::redact;

/// The most messages of one answer.
const MOST_MESSAGES: usize = 10_000;
/// The most bytes of a message, whatever the server allows.
const MOST_BYTES: usize = 1 << 20;
/// The room for the headers of a message.
const HEADERS: usize = 512;
/// The most bytes that are on their way at once.
const WINDOW: usize = 16 << 20;
/// How often servers are asked if they live.
const PING: Duration = Duration::from_secs(1);
/// How often the log is looked at while nothing is announced.
const LOOK: Duration = Duration::from_secs(1);

/// A stream of JetStream. It is connected by the first request; broken connections are made again.
#[derive(Debug)]
pub struct JetStream {
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
}

/// What is known of a stream.
#[derive(Debug)]
struct Checked {
    /// The subject of its messages.
    subject: String,
    replicas: usize,
    /// The subject of its notices.
    news: String,
    /// True if they are of messages that are stored, with their times.
    says_stored: bool,
}

#[derive(Debug)]
struct Shared {
    address: Address,
    access: Access,
    client: OnceCell<Client>,
    /// Connections to single servers, by their names.
    servers: Mutex<BTreeMap<String, Client>>,
    /// What is known of the stream once its settings were checked.
    checked: OnceLock<Checked>,
    notices: Notices,
}

impl JetStream {
    /// Prepares a connection to the stream of a URL, `nats://HOST:PORT/STREAM`; nothing is sent yet.
    ///
    /// # Errors
    /// `Invalid`: it is no such URL; `Io`: no threads can be started.
    pub fn new(url: &str, access: Access) -> Result<Self> {
        // Another provider may have been chosen by the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = Address::parse(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("annals-log")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::io("cannot start threads", error))?;
        let shared = Shared {
            address,
            access,
            client: OnceCell::new(),
            servers: Mutex::default(),
            checked: OnceLock::new(),
            notices: Notices::default(),
        };
        Ok(Self { runtime: Some(runtime), shared: Arc::new(shared) })
    }

    /// Creates the stream with the settings that a log needs.
    ///
    /// # Errors
    /// `InUse`: there is one of that name; `Unsupported`: the settings would lose transactions; `Unreachable`.
    pub fn create(&self, replicas: usize) -> Result<()> {
        let name = self.name();
        if replicas < 3 && !self.shared.access.trust_server {
            let fault = format!("num_replicas is {replicas}, and must be 3 or more");
            return Err(settings::refuse(&name, &[fault]));
        }
        let mut was_asked = false;
        Patience::default().until_reached(SystemClock.elapsed(), || {
            self.check_servers()?;
            match self.info() {
                Ok(info) if was_asked => self.check(&info).map(drop),
                Ok(_) => {
                    let what = "there is such a stream already: nodes can use it as it is";
                    Err(Error::new(ErrorKind::InUse, format!("{name}: {what}")))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    // If there is no answer, it may have been created all the same.
                    was_asked = true;
                    self.check(&self.ask_to_create(replicas)?).map(drop)
                }
                Err(error) => Err(error),
            }
        })
    }

    fn ask_to_create(&self, replicas: usize) -> Result<Info> {
        self.run(move |shared| async move {
            let client = shared.client().await?;
            let stream = &shared.address.stream;
            let subject = format!("$JS.API.STREAM.CREATE.{stream}");
            let made: std::result::Result<Info, Failure> =
                api::call(&client, subject, &settings::wanted(stream, replicas)).await;
            made.map_err(|failure| failure.into_error(shared.address.shown()))
        })
    }

    /// Checks the servers before a stream is created on some of them.
    fn check_servers(&self) -> Result<()> {
        let Access { monitors, trust_server, .. } = &self.shared.access;
        let faults = if *trust_server { Vec::new() } else { settings::unflushed(&[], monitors)? };
        match faults.is_empty() {
            true => Ok(()),
            false => Err(settings::refuse(&self.name(), &faults)),
        }
    }

    /// Runs requests on the threads of this client, and waits for them: also where another runtime is about.
    fn run<T, F>(&self, work: impl FnOnce(Arc<Shared>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let work = work(Arc::clone(&self.shared));
        let runtime = self.runtime.as_ref().ok_or_else(Self::ended)?;
        runtime.spawn(async move {
            // Nobody waits any more, if it fails.
            let _ = sender.send(work.await);
        });
        receiver.recv().map_err(|_| Self::ended())?
    }

    fn ended() -> Error {
        Error::new(ErrorKind::Closed, "the threads of the log have ended")
    }

    /// Asks the leader about the stream, a few times while there is none.
    fn info(&self) -> Result<Info> {
        self.run(|shared| async move { shared.info().await })
    }

    /// Checks the settings.
    fn check(&self, info: &Info) -> Result<Checked> {
        let Shared { address, access, .. } = &*self.shared;
        let mut faults = info.faults();
        if !access.trust_server {
            faults.extend(settings::unflushed(&info.servers(), &access.monitors)?);
        }
        if !faults.is_empty() && !access.trust_server {
            return Err(settings::refuse(address.shown(), &faults));
        }
        let subject = info.config.subjects.first().cloned().unwrap_or_default();
        let news = info.news();
        Ok(Checked { says_stored: news != subject, subject, replicas: info.replicas(), news })
    }

    /// Returns what is known of the stream; checks the settings first, once.
    fn checked(&self) -> Result<&Checked> {
        if let Some(checked) = self.shared.checked.get() {
            return Ok(checked);
        }
        let checked = self.check(&self.info()?)?;
        let news = checked.news.clone();
        self.run(move |shared| async move { shared.listen(news).await })?;
        Ok(self.shared.checked.get_or_init(|| checked))
    }
}

impl Drop for JetStream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn lost(&self, what: impl std::fmt::Display) -> Error {
        let message = redact(&format!("{}: {what}", self.address.shown()));
        Error::new(ErrorKind::Unreachable, message)
    }

    /// Returns the options of a connection.
    async fn options(&self) -> Result<ConnectOptions> {
        let mut options = ConnectOptions::new()
            .name("annals")
            .ping_interval(PING)
            .connection_timeout(api::PATIENCE * 2)
            .request_timeout(Some(api::PATIENCE))
            .max_reconnects(None)
            .reconnect_delay_callback(|tries| {
                Duration::from_millis(20 * u64::try_from(tries).unwrap_or(u64::MAX).clamp(1, 25))
            });
        if let Some(path) = &self.access.credentials {
            options = options.credentials_file(path).await.map_err(|error| {
                Error::io(format!("{}: can't read the credentials", path.display()), error)
            })?;
        } else if let Some((user, password)) =
            self.address.login().and_then(|it| it.split_once(':'))
        {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        } else if let Some(token) = self.address.login() {
            options = options.token(token.to_owned());
        }
        if let Some(path) = &self.access.authority {
            options = options.add_root_certificates(path.clone());
        }
        Ok(options)
    }

    async fn client(&self) -> Result<Client> {
        let connect = || async {
            let options = self.options().await?;
            let connected = options.connect(self.address.servers.clone()).await;
            connected.map_err(|error| self.lost(error))
        };
        self.client.get_or_try_init(connect).await.cloned()
    }

    async fn info(&self) -> Result<Info> {
        let client = self.client().await?;
        let subject = format!("$JS.API.STREAM.INFO.{}", self.address.stream);
        let mut tries = 0;
        loop {
            let answer =
                api::call::<Info>(&client, subject.clone(), &serde_json::Value::Null).await;
            match answer {
                Ok(info) => return Ok(info),
                Err(failure) if failure.is_no_stream() || tries == 3 => {
                    return Err(failure.into_error(self.address.shown()));
                }
                Err(Failure::Silence(_)) => self.reconnect(&client).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            tries += 1;
        }
    }

    /// Leaves a server that doesn't answer.
    async fn reconnect(&self, client: &Client) {
        // If it can't be asked to, it is about to.
        let _ = client.force_reconnect().await;
    }

    /// Listens to what is said of messages: that one is stored, or, if the stream doesn't say so, that one comes.
    async fn listen(self: Arc<Self>, subject: String) -> Result<()> {
        let client = self.client().await?;
        let mut published = client.subscribe(subject).await.map_err(|error| self.lost(error))?;
        let weak = Arc::downgrade(&self);
        tokio::spawn(async move {
            while let Some(notice) = published.next().await {
                let Some(shared) = weak.upgrade() else { return };
                shared.notices.take(notice.headers.as_ref());
            }
        });
        Ok(())
    }

    /// Appends messages that are all on their way at once.
    async fn append(
        &self,
        subject: &str,
        mut after: u64,
        messages: Vec<Bytes>,
    ) -> Result<Appended> {
        let client = self.client().await?;
        self.notices.forget(after);
        let mut rest = messages.into_iter().peekable();
        while rest.peek().is_some() {
            let (mut window, mut len) = (Vec::new(), 0);
            while let Some(message) =
                rest.next_if(|it| window.is_empty() || len + it.len() <= WINDOW)
            {
                len += message.len();
                window.push(message);
            }
            let count = window.len() as u64;
            let sent = window.into_iter().zip(after..).map(|(message, after)| {
                let client = client.clone();
                async move { api::append(&client, subject, after, message).await }
            });
            // They are begun in order, and a conflict if they aren't sent so: tokio, which lets no task do more than so many
            // steps at once, would change the order of many.
            let answers = unconstrained(join_all(sent)).await;
            if answers.iter().any(|answer| matches!(answer, Err(Failure::Silence(_)))) {
                self.reconnect(&client).await;
            }
            if let Some(appended) = self.judge(answers, after) {
                return Ok(appended);
            }
            after += count;
        }
        let says_stored = self.checked.get().is_some_and(|it| it.says_stored);
        Ok(Appended::Committed(if says_stored { self.notices.time_of(after).await } else { None }))
    }

    /// Returns what came of a window of messages; `None` if all are in the stream.
    fn judge(
        &self,
        answers: Vec<std::result::Result<u64, Failure>>,
        after: u64,
    ) -> Option<Appended> {
        for (answer, expected) in answers.into_iter().zip(after + 1..) {
            match answer {
                Ok(sequence) if sequence == expected => {}
                Ok(sequence) => {
                    let what = format!("message {expected} was acknowledged as {sequence}");
                    return Some(Appended::Unknown(self.lost(what)));
                }
                Err(failure) if failure.is_conflict() => return Some(Appended::Refused),
                Err(failure) => {
                    return Some(Appended::Unknown(failure.into_error(self.address.shown())));
                }
            }
        }
        None
    }
}

impl Log for JetStream {
    fn name(&self) -> String {
        self.shared.address.shown().to_owned()
    }

    fn most(&self) -> Result<usize> {
        self.checked()?;
        self.run(|shared| async move {
            let most = shared.client().await?.server_info().max_payload;
            Ok(most.saturating_sub(HEADERS).clamp(1 << 10, MOST_BYTES))
        })
    }

    fn append(&self, after: u64, messages: Vec<Bytes>) -> Result<Appended> {
        let subject = self.checked()?.subject.clone();
        self.run(move |shared| async move { shared.append(&subject, after, messages).await })
    }

    fn read(&self, from: u64, most: usize) -> Result<Vec<Message>> {
        self.checked()?;
        self.run(move |shared| async move {
            let client = shared.client().await?;
            let (name, stream) = (shared.address.shown(), shared.address.stream.as_str());
            let read =
                api::get_many(&client, api::Place { name, stream, from }, MOST_MESSAGES, most)
                    .await;
            if read.is_err() {
                shared.reconnect(&client).await;
            }
            read
        })
    }

    fn get(&self, sequence: u64, source: Source) -> Result<Option<Message>> {
        self.checked()?;
        self.run(move |shared| async move {
            let client = shared.client().await?;
            let stream = &shared.address.stream;
            let read = match source {
                Source::Any => api::get(&client, stream, sequence).await,
                Source::Leader => api::get_from_leader(&client, stream, sequence).await,
            };
            if matches!(read, Err(Failure::Silence(_))) {
                shared.reconnect(&client).await;
            }
            read.map_err(|failure| failure.into_error(shared.address.shown()))
        })
    }

    fn copies(&self, sequence: u64) -> Result<Replicas> {
        let count = self.checked()?.replicas;
        self.run(move |shared| async move {
            Ok(Replicas { count, copies: shared.copies(sequence).await? })
        })
    }

    fn extent(&self) -> Result<Extent> {
        self.checked()?;
        Ok(self.info()?.state.extent())
    }

    fn confirmed(&self) -> Result<Option<Extent>> {
        self.run(|shared| async move {
            let info = shared.info().await?;
            if !info.is_led() {
                // Another server may reach the one that leads.
                shared.reconnect(&shared.client().await?).await;
            }
            Ok(info.is_led().then(|| info.state.extent()))
        })
    }

    fn remove(&self, before: u64) -> Result<()> {
        self.checked()?;
        self.run(move |shared| async move {
            let client = shared.client().await?;
            let removed = api::purge(&client, &shared.address.stream, before).await;
            removed.map_err(|failure| failure.into_error(shared.address.shown()))
        })
    }

    fn wait(&self, after: u64, timeout: Duration) {
        let until = SystemClock.elapsed() + timeout;
        let work = self.run(move |shared| async move {
            let client = shared.client().await?;
            loop {
                let left = until.saturating_sub(SystemClock.elapsed());
                let news = shared.notices.news.notified();
                let found = api::get(&client, &shared.address.stream, after + 1).await;
                if left.is_zero() || !matches!(found, Ok(None)) {
                    return Ok(());
                }
                if tokio::time::timeout(left.min(LOOK), news).await.is_ok() {
                    // It is announced before it is committed.
                    shared.look_for(&client, after + 1).await;
                }
            }
        });
        if work.is_err() {
            SystemClock.pause(timeout.min(Duration::from_millis(100)));
        }
    }
}

impl Shared {
    /// Looks for a message that was announced, for a moment.
    async fn look_for(&self, client: &Client, sequence: u64) {
        let mut pause = Duration::from_micros(200);
        while pause < Duration::from_millis(50) {
            if !matches!(api::get(client, &self.address.stream, sequence).await, Ok(None)) {
                return;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
}
