//! A connection to a server, by the URL of a database: `http://HOST:PORT/v1/NAME`.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use annals::{Cursor, Error, ErrorKind, Result, Txid};
use annals_journal::may_begin_journal;
use annals_storage::{Spool, Storage as _};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use reqwest::header::HeaderValue;
use reqwest::{Body, Method, RequestBuilder, StatusCode, Url};
use serde::Deserialize;

use crate::client::{Client, Lost, Response, SILENCE, SLOWEST, ServerAccess, whole};
use crate::redact::redact;
use crate::tunnel::Tunnel;
use crate::{Connection, Description, Granted, Pulled, Pushed};

/// The most bytes of an answer in JSON.
pub(crate) const MOST_OF_JSON: u64 = 64 << 20;
/// The most bytes of an answer to SQL: a server ends at half of it.
const MOST_OF_ANSWER: u64 = 128 << 20;
/// The most bytes of frames whose length isn't said.
const MOST_UNTOLD: u64 = 2 << 30;
/// The most bytes of an error.
const MOST_OF_REFUSAL: u64 = 64 << 10;
/// The most bytes of frames that are taken along with a conflict; more are pulled.
const MOST_NEWS: u64 = 8 << 20;
/// The pieces in which the frames of a push are read while they are sent.
const PIECE: usize = 256 << 10;
/// The header with the ticket of a lease.
const LEASE: &str = "Annals-Lease";

/// A database on a server. Connections are kept open and used again; a broken one is replaced by the next request.
#[derive(Debug)]
pub struct Http {
    url: Url,
    /// The URL as messages show it.
    shown: String,
    token: Option<String>,
    client: Client,
    /// Dropped after the client, whose connections it passes on.
    tunnel: Option<Tunnel>,
    /// How many pushes in a row came too late.
    conflicts: AtomicU64,
    /// The ticket of the turn that the server has given for the next push.
    turn: Mutex<Option<HeaderValue>>,
}

/// What a server says of an error.
#[derive(Debug, Default, Deserialize)]
struct Problem {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

/// An answer that isn't success.
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// True if the server says that the request was judged, and changed nothing.
    pub(crate) is_judgement: bool,
}

/// The answer to a push that was taken: the end of the journal, now or then.
#[derive(Deserialize)]
#[serde(untagged)]
enum Taken {
    Now {
        #[serde(rename = "txid")]
        _txid: u64,
    },
    Before {
        #[serde(rename = "already_there")]
        _already_there: bool,
    },
}

#[derive(Deserialize)]
struct Described {
    id: String,
    txid: u64,
    chain: String,
    first: u64,
}

#[derive(Deserialize)]
struct Leased {
    lease: String,
    until: String,
}

#[derive(Deserialize)]
struct Chains {
    chains: Vec<Option<String>>,
}

impl Http {
    /// Prepares a connection; nothing is sent yet. The token says who asks: see `annals token`.
    ///
    /// `ssh://[USER@]HOST[:PORT]/PATH` names a file on another machine: `ssh` runs `annals serve PATH --stdio` there
    /// while this exists, and no token is needed. The environment variable `ANNALS_SSH` names another program than
    /// `ssh`, and `ANNALS_REMOTE` another than `annals` there. A path `/~/PATH` is relative to the home folder.
    ///
    /// # Errors
    /// `Invalid`: the URL isn't one of a database; `Unsupported`: ssh, on another system than a Unix.
    pub fn new(url: &str, token: Option<String>) -> Result<Self> {
        Self::with(url, ServerAccess { token, authority: None })
    }

    /// Does what [`new`](Self::new) does, with other settings than the usual ones.
    ///
    /// # Errors
    /// As [`new`](Self::new); `Invalid`: the file of the authority holds no certificates.
    pub fn with(url: &str, access: ServerAccess) -> Result<Self> {
        let ServerAccess { token, authority } = access.checked()?;
        let wrong = |what: &str| {
            Error::invalid(format!(
                "{:?} isn't the URL of a database: {what}; write http://HOST:PORT/v1/NAME or ssh://HOST/PATH",
                redact(url)
            ))
        };
        let parsed =
            Url::parse(url.trim_end_matches('/')).map_err(|error| wrong(&error.to_string()))?;
        refuse_login(&parsed).map_err(wrong)?;
        let (shown, tunnel) = (parsed.to_string(), Tunnel::of(&parsed, wrong)?);
        let (url, client) = match &tunnel {
            Some(tunnel) => (tunnel.url()?, Client::new(|client| tunnel.lead(client))),
            None => (parsed, Client::trusting(authority.as_deref(), |client| client)),
        };
        let names = url.path_segments().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https")
            || !matches!(names[..], ["v1", name] if !name.is_empty())
        {
            return Err(wrong("it doesn't end with /v1/NAME"));
        }
        let client = client.map_err(|error| wrong(&whole(&error)))?;
        let (conflicts, turn) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { url, shown, token, client, tunnel, conflicts, turn })
    }

    fn turn(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn url(&self) -> &Url {
        &self.url
    }

    /// Begins a request for something of the database.
    pub(crate) fn request(&self, method: Method, rest: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{rest}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) fn send(&self, request: RequestBuilder) -> std::result::Result<Response<'_>, Lost> {
        self.client.send(request, SILENCE)
    }

    /// Sends a request that changes nothing.
    pub(crate) fn get(&self, rest: &str, wait: Duration) -> Result<Response<'_>> {
        let request = self.request(Method::GET, rest);
        let response = self.client.send(request, wait + SILENCE);
        let response = response.map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            _ => Err(self.refused(response)),
        }
    }

    /// Sends a request that runs once, however often it is sent with its key.
    pub(crate) fn post_json(
        &self,
        rest: &str,
        key: &str,
        body: &str,
    ) -> std::result::Result<Response<'_>, Lost> {
        let request = self.request(Method::POST, rest).header("Content-Type", "application/json");
        self.send(request.header("Idempotency-Key", key).body(body.to_owned()))
    }

    /// Asks the server a query of SQL; returns the answer as the type `accept`, as `text/csv`. `body` is JSON:
    /// `{"sql":"SELECT ..","params":[..]}`.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported`: the server refuses the query, with its message; `Unreachable`; those of tokens.
    pub fn sql(&self, body: &str, accept: &str) -> Result<Vec<u8>> {
        let request = self.request(Method::POST, "/sql").header("Content-Type", "application/json");
        let response = self.send(request.header("Accept", accept).body(body.to_owned()));
        let response = response.map_err(|error| self.unreachable(&error))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response));
        }
        // A page of a login that somebody else puts in between is no answer, and neither is a table of another program.
        let text = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
        if text("Annals-Txid").is_none() || text("Content-Type") != Some(accept) {
            return Err(self.strange("something else than an answer to SQL"));
        }
        self.read(response, MOST_OF_ANSWER)
    }

    pub(crate) fn unreachable(&self, error: &Lost) -> Error {
        let failure = self.tunnel.as_ref().and_then(Tunnel::failure);
        let why = failure.unwrap_or_else(|| whole(error));
        Error::new(error.kind(), format!("{}: {why}", self.shown))
    }

    /// Returns the error that a server answered with.
    pub(crate) fn refused(&self, response: Response<'_>) -> Error {
        let status = response.status();
        let cut_off = |_| self.problem(status, Problem::default());
        self.refusal(response).map_or_else(cut_off, |refusal| refusal.error)
    }

    /// Returns what a server answered in place of success; fails if that was cut off.
    pub(crate) fn refusal(&self, response: Response<'_>) -> Result<Refusal> {
        let status = response.status();
        let text = self.read(response, MOST_OF_REFUSAL)?;
        let problem: Problem = serde_json::from_slice(&text).unwrap_or_default();
        let is_judgement = match problem.error.as_str() {
            // Not of our server. What is between answers otherwise after it has passed the request on, too.
            "" => matches!(status.as_u16(), 400 | 401 | 403 | 404 | 405 | 411 | 413 | 414 | 431),
            "unknown" => false,
            _ => status != StatusCode::INTERNAL_SERVER_ERROR,
        };
        Ok(Refusal { error: self.problem(status, problem), is_judgement })
    }

    fn problem(&self, status: StatusCode, problem: Problem) -> Error {
        let kind = match status {
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::CONFLICT => ErrorKind::Diverged,
            StatusCode::GONE => ErrorKind::Forgotten,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooLarge,
            StatusCode::UNPROCESSABLE_ENTITY => kind_named(&problem.error),
            StatusCode::INSUFFICIENT_STORAGE => ErrorKind::NoSpace,
            StatusCode::PRECONDITION_FAILED | StatusCode::LOCKED => ErrorKind::Conflict,
            _ if problem.error == "unknown" => ErrorKind::UnknownOutcome,
            status if status.is_server_error() => ErrorKind::Unreachable,
            _ => ErrorKind::Invalid,
        };
        let message = match problem.message.as_str() {
            "" => status.to_string(),
            message => message.to_owned(),
        };
        Error::new(kind, format!("{}: {message}", self.shown))
    }

    pub(crate) fn json<T: for<'de> Deserialize<'de>>(&self, response: Response<'_>) -> Result<T> {
        let text = self.read(response, MOST_OF_JSON)?;
        serde_json::from_slice(&text).map_err(|_| self.strange("something else than was asked for"))
    }

    /// Reads a body into memory, so many bytes at most: whoever answers may not be a server of ours.
    pub(crate) fn read(&self, response: Response<'_>, most: u64) -> Result<Vec<u8>> {
        let bytes = response.read(most + 1).map_err(|error| self.unreachable(&error))?;
        if bytes.len() as u64 > most {
            return Err(self.strange(&format!("more than {most} bytes")));
        }
        Ok(bytes)
    }

    /// Begins a request that pushes bytes after a cursor.
    fn pushing(&self, from: Cursor, bytes: &Spool) -> Result<RequestBuilder> {
        let frames = bytes.without(0);
        let frames = frames.map_err(|error| Error::io("can't read the spooled frames", error))?;
        let body = Body::wrap(Reading { at: frames.begin(), frames });
        let request = self.request(Method::POST, "/frames").body(body);
        Ok(request.header("If-Match", format!("\"{from}\"")))
    }

    /// Sends a push of so many bytes.
    fn push_it(&self, request: RequestBuilder, bytes: &Spool) -> Result<Pushed> {
        let most = SILENCE + Duration::from_secs((bytes.end() - bytes.begin()) / SLOWEST);
        self.pushed(self.client.send(request, most))
    }

    /// Returns what is heard of a push.
    fn pushed(&self, sent: std::result::Result<Response<'_>, Lost>) -> Result<Pushed> {
        let response = match sent {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Err(self.unreachable(&error)),
            Err(error) => return Ok(Pushed::Unknown(self.unreachable(&error))),
        };
        match response.status() {
            // Something between may say so, too, but not with the end of a journal.
            StatusCode::OK => match self.json::<Taken>(response) {
                Ok(_) => {
                    self.conflicts.store(0, Ordering::Relaxed);
                    Ok(Pushed::Committed)
                }
                Err(error) => Ok(Pushed::Unknown(error)),
            },
            StatusCode::PRECONDITION_FAILED => {
                self.conflicts.fetch_add(1, Ordering::Relaxed);
                *self.turn() = response.headers().get("Annals-Turn").cloned();
                let has_frames = response.headers().contains_key("Annals-Next");
                let expected = response.content_length().filter(|_| has_frames);
                let frames = self.read(response, MOST_NEWS).ok();
                let is_whole = |it: &Vec<u8>| expected == Some(it.len() as u64);
                // Else they are pulled.
                Ok(Pushed::Conflict(frames.filter(is_whole)))
            }
            // The same frames may be pushed again, and then the reason may arrive.
            _ => match self.refusal(response) {
                Ok(Refusal { error, is_judgement: true }) => Err(error),
                Ok(Refusal { error, .. }) | Err(error) => Ok(Pushed::Unknown(error)),
            },
        }
    }

    pub(crate) fn strange(&self, what: &str) -> Error {
        Error::invalid(format!(
            "{}: the server answered with {what}: is it one of Annals?",
            self.shown
        ))
    }

    fn cursor_of(&self, response: &Response<'_>) -> Result<Cursor> {
        let next = response.headers().get("Annals-Next").and_then(|next| next.to_str().ok());
        next.and_then(|next| next.parse().ok()).ok_or_else(|| self.strange("no cursor"))
    }
}

/// Refuses a user or a password in a URL, which no server of ours asks for: nobody is to believe that it is protected by them.
pub(crate) fn refuse_login(url: &Url) -> std::result::Result<(), &'static str> {
    match url.scheme() {
        "ssh" if url.password().is_some() => Err("it has a password: ssh asks for one itself"),
        "ssh" => Ok(()),
        _ if url.username().is_empty() && url.password().is_none() => Ok(()),
        _ => Err(
            "it has a user or a password: leave them out; the token is in ANNALS_TOKEN, or given with --token",
        ),
    }
}

/// Returns the kind that a server names in a refusal.
fn kind_named(name: &str) -> ErrorKind {
    match name {
        "unique" => ErrorKind::Unique,
        "reference" => ErrorKind::Reference,
        // What a procedure failed with.
        "refused" | "aborted" => ErrorKind::Refused,
        "unsupported" => ErrorKind::Unsupported,
        "in_use" => ErrorKind::InUse,
        _ => ErrorKind::Invalid,
    }
}

/// The body of a push: a spool, read while it is sent.
struct Reading {
    frames: Spool,
    at: u64,
}

impl http_body::Body for Reading {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let rest = usize::try_from(self.frames.end() - self.at).unwrap_or(PIECE);
        if rest == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; rest.min(PIECE)];
        let read = self.frames.read_at(self.at, &mut piece).map(|read| {
            self.at += read as u64;
            piece.truncate(read);
            Frame::data(Bytes::from(piece))
        });
        Poll::Ready(Some(read))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.frames.end() - self.at)
    }
}

impl Connection for Http {
    fn name(&self) -> String {
        self.shown.clone()
    }

    fn describe(&self) -> Result<Description> {
        let response = self.get("", Duration::ZERO)?;
        let Described { id, txid, chain, first } = self.json(response)?;
        let chain = u64::from_str_radix(&chain, 16).map_err(|_| self.strange("a wrong chain"))?;
        Ok(Description { id, end: Cursor { txid: Txid(txid), chain }, first: Txid(first) })
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        let after = after.map_or_else(String::new, |after| format!("after={after}&"));
        let mut response =
            self.get(&format!("/frames?{after}wait={}", wait.as_secs_f64()), wait)?;
        let next = self.cursor_of(&response)?;
        let is_seal = response.headers().contains_key("Annals-Seal");
        let expected = response.content_length();
        let begin = into.end();
        while let Some(piece) = response.next().map_err(|error| self.unreachable(&error))? {
            // Else the disk would be filled before the bytes are verified.
            let is_first = into.end() == begin;
            let is_long = expected.is_none() && into.end() - begin > MOST_UNTOLD;
            if is_long || (is_first && !may_begin_journal(&piece)) {
                return Err(self.strange("something else than frames"));
            }
            let written = into.append(&piece);
            written.map_err(|error| Error::io("can't spool what was pulled", error))?;
        }
        if expected.is_some_and(|expected| expected != into.end() - begin) {
            let message = format!("{}: the answer was cut off", self.shown);
            return Err(Error::new(ErrorKind::Unreachable, message));
        }
        Ok(Pulled { next, is_seal })
    }

    fn push_seal(&self, from: Cursor, bytes: &Spool) -> Result<Pushed> {
        let request = self.pushing(from, bytes)?.header("Annals-Seal", "1");
        self.push_it(request, bytes)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        let mut request = self
            .pushing(from, frames)?
            .header("Prefer", "return=representation")
            .header("Annals-Conflicts", self.conflicts.load(Ordering::Relaxed));
        if let Some(ticket) = lease {
            request = request.header(LEASE, format!("{ticket:016x}"));
        }
        if let Some(turn) = self.turn().take() {
            request = request.header("Annals-Turn", turn);
        }
        self.push_it(request, frames)
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        let seconds = lasting.as_secs_f64();
        let mut request = self.request(Method::POST, &format!("/lease?seconds={seconds}"));
        if let Some(ticket) = ticket {
            request = request.header(LEASE, format!("{ticket:016x}"));
        }
        let response = self.send(request).map_err(|error| self.unreachable(&error))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response));
        }
        let Leased { lease, until } = self.json(response)?;
        let ticket = u64::from_str_radix(&lease, 16).map_err(|_| self.strange("a wrong lease"))?;
        let until = until.parse().map_err(|_| self.strange("a wrong time"))?;
        Ok(Granted { ticket, until })
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        let ticket = format!("{ticket:016x}");
        let request = self.request(Method::DELETE, "/lease").header(LEASE, ticket);
        let response = self.send(request).map_err(|error| self.unreachable(&error))?;
        match response.status() {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(()),
            _ => Err(self.refused(response)),
        }
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        let list: Vec<String> = txids.iter().map(|txid| txid.0.to_string()).collect();
        let path = format!("/chains?txid={}", list.join(","));
        let Chains { chains } = self.json(self.get(&path, Duration::ZERO)?)?;
        let wrong = |_| self.strange("a wrong chain");
        let chain = |text: Option<String>| {
            text.map(|text| u64::from_str_radix(&text, 16).map_err(wrong)).transpose()
        };
        chains.into_iter().map(chain).collect()
    }
}
