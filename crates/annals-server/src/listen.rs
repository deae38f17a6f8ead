//! Connections: accepting them, and ending them gracefully.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use annals::storage::most_open_files;
use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tower::util::MapRequest;

use crate::identity::Identity;
use crate::patient::Patient;
use crate::seats::{OFTEN, Seat, Seats};
use crate::server::Server;
use crate::shared::{Ending, Limits};
use crate::slow::Slow;

/// The windows of HTTP/2, which a client can fill with bodies that wait: with those of the standard, 64 KiB, a push between
/// distant machines waits for the other side most of the time.
const WINDOW: u32 = 512 << 10;
/// How much of an answer waits for a slow reader in HTTP/2, and how many requests a connection has at a time.
const BUFFER: usize = 256 << 10;
const STREAMS: u32 = 64;
/// How long requests that are being answered get when the server ends.
const GRACE: Duration = Duration::from_secs(10);
/// How long a connection gets to end that has no request of one who may ask.
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// File descriptors that are left for files.
const FILES: usize = 256;
/// The pauses after failed accepts, as when there are no more file descriptors.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A server that listens.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    seats: Arc<Seats>,
    serving: Serving,
}

/// How connections are served.
#[derive(Clone)]
struct Serving {
    acceptor: Option<TlsAcceptor>,
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    limits: Limits,
    ending: Ending,
    slow: Arc<AtomicU64>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listening at {}", self.url())
    }
}

impl Server {
    /// Begins to listen at an address, as `127.0.0.1:8080`; with port 0 at a free one.
    ///
    /// # Errors
    /// `PermissionDenied`: another machine could reach the address, and there is no TLS; those of the system.
    pub async fn listen(self, address: &str) -> io::Result<Listening> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && (self.identity.is_none() || self.is_open()) {
            let what = match (self.identity.is_none(), self.is_open()) {
                (true, true) => "TLS, and tokens",
                (true, false) => "TLS",
                (false, _) => "tokens",
            };
            let message = format!(
                "{address} can be reached from other machines, which needs {what}: name a certificate and its key, \
                 and don't let everybody in; or listen at 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let acceptor = self.identity.as_ref().map(Identity::acceptor);
        let seats = Arc::new(Seats::new(places(self.shared.limits.connections)));
        Ok(Listening { listener, address, seats, serving: Serving::of(self, acceptor) })
    }
}

impl Listening {
    /// Returns its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.serving.acceptor.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `end`. Then it accepts no more connections, ends those that wait for news, and waits up to 10 s for
    /// requests that are being answered.
    ///
    /// # Errors
    /// None that is known.
    pub async fn run(self, end: impl Future<Output = ()> + Send) -> io::Result<()> {
        let Self { listener, seats, serving, .. } = self;
        let accepting = accept(&listener, &seats, &serving);
        tokio::select! {
            () = end => {}
            () = accepting => {}
            () = sweep(&seats, &serving) => {}
        }
        drop(listener);
        serving.ending.begin();
        let _ = timeout(GRACE, seats.all_free()).await;
        Ok(())
    }
}

/// Returns how many connections a server can have that shall have so many: each needs a file descriptor, and so do files.
fn places(wanted: usize) -> usize {
    let limit = usize::try_from(most_open_files()).unwrap_or(usize::MAX);
    let places = limit - FILES.min(limit / 2);
    if places < wanted {
        tracing::warn!(
            "this process may have {limit} open files, so the server takes {places} connections at a time, not {wanted}: \
             raise the limit (ulimit -n)"
        );
    }
    wanted.min(places).max(1)
}

/// Accepts connections, for ever.
async fn accept(listener: &TcpListener, seats: &Arc<Seats>, serving: &Serving) {
    let mut pause = PAUSE;
    loop {
        let free = seats.free().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::error!(%error, "can't accept a connection");
                seats.sweep(serving.limits.silence, true);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        };
        pause = PAUSE;
        let seat = seats.take(free);
        // Small answers must not wait for further ones.
        let _ = TcpStream::set_nodelay(&stream, true);
        tokio::spawn(serving.clone().serve(stream, seat));
    }
}

/// Ends connections that keep their places without a use, for ever.
async fn sweep(seats: &Seats, serving: &Serving) {
    let mut often = interval(OFTEN);
    often.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        often.tick().await;
        seats.sweep(serving.limits.silence, false);
    }
}

impl Serving {
    fn of(server: Server, acceptor: Option<TlsAcceptor>) -> Self {
        let (limits, ending) = (server.shared.limits, server.shared.ending.clone());
        let slow = Arc::clone(&server.shared.slow);
        Self { acceptor, router: server.router(), builder: builder(limits), limits, ending, slow }
    }

    /// Serves a connection, until it, the server, or its right to its place ends.
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        seat: Arc<Seat>,
    ) {
        // An error is the client's: it left, was too slow, or didn't speak TLS or HTTP.
        let Some(acceptor) = &self.acceptor else { return self.speak(stream, seat).await };
        let shaken = tokio::select! {
            shaken = timeout(self.limits.silence, acceptor.accept(stream)) => shaken,
            () = seat.ended() => return,
        };
        if let Ok(Ok(stream)) = shaken {
            self.speak(stream, seat).await;
        }
    }

    /// Speaks HTTP.
    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        seat: Arc<Seat>,
    ) {
        let slow = Arc::new(Slow::new(Arc::clone(&self.slow)));
        let stream = Patient::new(stream, self.limits.silence, Arc::clone(&slow));
        let of = Arc::clone(&seat);
        let service = MapRequest::new(self.router.clone(), move |mut request: Request<_>| {
            request.extensions_mut().insert(Arc::clone(&of));
            request.extensions_mut().insert(Arc::clone(&slow));
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let grace = tokio::select! {
            _ = connection.as_mut() => return,
            () = self.ending.begun() => GRACE,
            () = seat.ended() => IDLE_GRACE,
        };
        connection.as_mut().graceful_shutdown();
        let _ = timeout(grace, connection).await;
    }
}

impl Server {
    /// Serves one connection, as that of standard input and output, until its client ends it or `end`.
    ///
    /// # Errors
    /// None that is known: a connection that breaks has ended.
    pub async fn speak(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        end: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let (seats, ending) = (Seats::new(1), self.shared.ending.clone());
        let mut serving = Serving::of(self, None);
        // Whoever writes a request and closes the pipe still gets the answer.
        serving.builder.http1().half_close(true);
        let seat = seats.take(seats.free().await);
        let speaking = serving.speak(stream, seat);
        tokio::pin!(speaking);
        tokio::select! {
            () = &mut speaking => return Ok(()),
            () = end => ending.begin(),
        }
        speaking.await;
        Ok(())
    }
}

/// Returns how connections are served.
fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.silence)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_send_buf_size(BUFFER)
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(limits.silence);
    builder
}
