//! Requests over HTTP, answered on the thread that asks.
//!
//! A client has a runtime, but no thread: whoever waits for an answer serves its connections meanwhile. So neither a request
//! nor a piece of an answer waits for another thread to wake.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals::ErrorKind;
use annals_storage::{Clock as _, SystemClock};
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, IntoUrl, Method, RequestBuilder, StatusCode};
use tokio::runtime::{Builder, Handle, Runtime};

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

/// How a client reaches servers, and who it is.
#[derive(Clone, Debug, Default)]
pub struct ServerAccess {
    /// The token that is sent with each request. It is sent to the server that a URL names, and to no other.
    pub token: Option<String>,
    /// A file with the certificates, as PEM, of an authority that is trusted besides those of the system.
    pub authority: Option<PathBuf>,
}

impl ServerAccess {
    /// Returns what the environment variables `ANNALS_TOKEN` and `ANNALS_CA` say.
    #[must_use]
    pub fn of_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let token = variable("ANNALS_TOKEN").and_then(|token| token.into_string().ok());
        Self { token, authority: variable("ANNALS_CA").map(Into::into) }
    }

    /// Refuses a token that no request can have.
    pub(crate) fn checked(self) -> annals::Result<Self> {
        let fits = |token: &String| HeaderValue::from_str(token).is_ok();
        if self.token.as_ref().is_none_or(fits) {
            return Ok(self);
        }
        let wrong = "the token has a line break, or another sign that no token has";
        Err(annals::Error::invalid(wrong))
    }
}

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(5);

/// How long a server may be silent in an answer.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// The fewest bytes of a body that should arrive in a second, after the time of silence: one who sends a byte now and then is
/// not silent, and would never end.
pub(crate) const SLOWEST: u64 = 16 << 10;

/// Keeps connections open, and uses them again; a broken one is replaced by the next request.
#[derive(Debug)]
pub(crate) struct Client {
    client: reqwest::Client,
    /// `None` only while this is dropped.
    runtime: Option<Runtime>,
}

/// An answer, whose body may not be here yet.
#[derive(Debug)]
pub(crate) struct Response<'c> {
    client: &'c Client,
    response: reqwest::Response,
    /// How many bytes of the body have come, and how long they were waited for.
    received: u64,
    waited: Duration,
}

/// Why no whole answer came.
#[derive(Debug)]
pub(crate) enum Lost {
    Http(reqwest::Error),
    NoRuntime(std::io::Error),
    /// The certificates of the authority can't be read.
    NoAuthority(PathBuf, String),
    Silent(Duration),
    /// So many bytes came in so much time.
    Slow(u64, Duration),
}

impl Lost {
    /// True if nothing was sent, since there is no connection.
    pub(crate) fn is_connect(&self) -> bool {
        match self {
            Self::Http(error) => error.is_connect(),
            Self::NoRuntime(_) | Self::NoAuthority(..) => true,
            Self::Silent(_) | Self::Slow(..) => false,
        }
    }

    /// Returns the kind of the error: whether the same request may succeed later.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            // The server answers, and will say the same again.
            Self::Http(error) if error.is_redirect() => ErrorKind::Invalid,
            _ => ErrorKind::Unreachable,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => error.fmt(f),
            Self::NoRuntime(error) => error.fmt(f),
            Self::NoAuthority(path, why) => {
                write!(f, "{}: holds no certificates as PEM: {why}", path.display())
            }
            Self::Silent(time) => write!(f, "no answer came within {time:?}"),
            Self::Slow(bytes, time) => {
                write!(f, "only {bytes} bytes of the answer came in {} s", time.as_secs())
            }
        }
    }
}

impl std::error::Error for Lost {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Http(error) => error.source(),
            Self::NoRuntime(error) => error.source(),
            Self::NoAuthority(..) | Self::Silent(_) | Self::Slow(..) => None,
        }
    }
}

/// Follows redirects to the same server only. Another one must not get what is meant for this one, and what it answers isn't
/// this one's word.
pub(crate) fn of_same_origin() -> Policy {
    Policy::custom(|attempt| {
        let first = attempt.previous().first();
        let is_same = first.is_some_and(|first| first.origin() == attempt.url().origin());
        match is_same {
            true if attempt.previous().len() > REDIRECTS => {
                attempt.error("the server redirects again and again")
            }
            true => attempt.follow(),
            false => {
                let elsewhere = format!(
                    "the server redirects to another one, {}: if that is right, use its URL",
                    attempt.url().origin().ascii_serialization()
                );
                attempt.error(elsewhere)
            }
        }
    })
}

/// Reads the certificates of an authority.
fn certificates(path: &Path) -> Result<Vec<Certificate>, Lost> {
    let wrong = |why: String| Lost::NoAuthority(path.to_owned(), why);
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(whole(&error)))?;
    if found.is_empty() { Err(wrong("there are none".to_owned())) } else { Ok(found) }
}

impl Client {
    /// Makes a client that trusts an authority, too; `change` may change how it connects.
    pub(crate) fn trusting(
        authority: Option<&Path>,
        change: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Lost> {
        let authority = authority.map(certificates).transpose()?.unwrap_or_default();
        Self::new(|client| change(client.tls_certs_merge(authority)))
    }

    /// Makes a client; `change` may change how it connects.
    pub(crate) fn new(change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Self, Lost> {
        // Another provider may have been chosen by the program.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let usual = reqwest::Client::builder()
            .connect_timeout(CONNECTING)
            .redirect(of_same_origin())
            .http2_initial_stream_window_size(8 << 20)
            .http2_initial_connection_window_size(16 << 20)
            .user_agent(concat!("annals/", env!("CARGO_PKG_VERSION")));
        let client = change(usual).build().map_err(Lost::Http)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self { client, runtime: Some(runtime.map_err(Lost::NoRuntime)?) })
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request; returns the answer when its status and headers are here. That may take so long, the request's body
    /// included.
    pub(crate) fn send(
        &self,
        request: RequestBuilder,
        most: Duration,
    ) -> Result<Response<'_>, Lost> {
        let sending = async {
            // Looks at the connections first: one may have been closed while nobody served it, and the request would be lost.
            tokio::task::yield_now().await;
            request.send().await
        };
        let response = self.wait(sending, most)?;
        Ok(Response { client: self, response, received: 0, waited: Duration::ZERO })
    }

    fn wait<T: Send>(
        &self,
        work: impl Future<Output = reqwest::Result<T>> + Send,
        most: Duration,
    ) -> Result<T, Lost> {
        let runtime = self.runtime.as_ref().ok_or(Lost::Silent(Duration::ZERO))?;
        let run = || {
            runtime.block_on(async {
                match tokio::time::timeout(most, work).await {
                    Ok(done) => done.map_err(Lost::Http),
                    Err(_) => Err(Lost::Silent(most)),
                }
            })
        };
        if Handle::try_current().is_err() {
            return run();
        }
        // A thread of another runtime must not serve this one.
        let other = std::thread::scope(|scope| scope.spawn(run).join());
        other.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // An async thread, on which this may happen, must not wait for its end.
        let _ = self.runtime.take().map(Runtime::shutdown_background);
    }
}

impl Response<'_> {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the length of the body, if the answer says it.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the next piece of the body; `None` at its end.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Lost> {
        let most = SILENCE + Duration::from_secs(self.received / SLOWEST);
        let left = most.saturating_sub(self.waited).min(SILENCE);
        let begun = SystemClock.elapsed();
        let piece = self.client.wait(self.response.chunk(), left);
        self.waited += SystemClock.elapsed().saturating_sub(begun);
        self.received +=
            piece.as_ref().ok().and_then(Option::as_ref).map_or(0, |it| it.len() as u64);
        match piece {
            Err(Lost::Silent(_)) if left < SILENCE => Err(Lost::Slow(self.received, self.waited)),
            piece => piece,
        }
    }

    /// Reads the body, and drops what is more than so many bytes.
    pub(crate) fn read(mut self, most: u64) -> Result<Vec<u8>, Lost> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        while let (true, Some(piece)) = (bytes.len() < most, self.next()?) {
            let count = piece.len().min(most - bytes.len());
            bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        }
        Ok(bytes)
    }
}

/// Joins an error with its causes.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    for error in std::iter::successors(error.source(), |error| error.source()) {
        if !text.contains(&error.to_string()) {
            text = format!("{text}: {error}");
        }
    }
    if text.contains("UnknownIssuer") {
        text += "; --ca or ANNALS_CA names the file of who vouches for it";
    }
    text
}
