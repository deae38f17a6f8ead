//! Connections: accepting them, and ending them gracefully.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::identity::Identity;
use crate::patient::Patient;
use crate::server::Server;
use crate::shared::{Ending, Limits};

/// The windows of HTTP/2: with those of the standard, 64 KiB, a pull waits for the other side most of the time.
const WINDOW: u32 = 8 << 20;
/// How much of an answer waits for a slow reader in HTTP/2, and how many requests a connection has at a time.
const BUFFER: usize = 256 << 10;
const STREAMS: u32 = 64;
/// How long requests that are being answered get when the server ends.
const GRACE: Duration = Duration::from_secs(10);
/// The pause after a failed accept, as when there are no more file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
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
        let (limits, ending) = (self.shared.limits, self.shared.ending.clone());
        let slow = Arc::clone(&self.shared.slow);
        Ok(Listening { listener, address, acceptor, router: self.router(), limits, ending, slow })
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
        let scheme = if self.acceptor.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until `end`. Then it accepts no more connections, ends those that wait for news, and waits up to 10 s for
    /// requests that are being answered.
    ///
    /// # Errors
    /// None that is known.
    pub async fn run(self, end: impl Future<Output = ()> + Send) -> io::Result<()> {
        let graceful = GracefulShutdown::new();
        let seats = Arc::new(Semaphore::new(self.limits.connections));
        let builder = builder(self.limits);
        tokio::pin!(end);
        loop {
            let seat = tokio::select! {
                () = &mut end => break,
                seat = Arc::clone(&seats).acquire_owned() => seat,
            };
            let accepted = tokio::select! {
                () = &mut end => break,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // Small answers must not wait for further ones.
            let _ = TcpStream::set_nodelay(&stream, true);
            let service = TowerToHyperService::new(self.router.clone());
            let (builder, watcher) = (builder.clone(), graceful.watcher());
            let (acceptor, silence) = (self.acceptor.clone(), self.limits.silence);
            let slow = Arc::clone(&self.slow);
            tokio::spawn(async move {
                // An error is the client's: it left, was too slow, or didn't speak TLS or HTTP.
                let Some(acceptor) = acceptor else {
                    let stream = TokioIo::new(Patient::new(stream, silence, slow));
                    let connection = builder.serve_connection(stream, service);
                    let _ = watcher.watch(connection.into_owned()).await;
                    drop(seat);
                    return;
                };
                if let Ok(Ok(stream)) = tokio::time::timeout(silence, acceptor.accept(stream)).await
                {
                    let stream = TokioIo::new(Patient::new(stream, silence, slow));
                    let connection = builder.serve_connection(stream, service);
                    let _ = watcher.watch(connection.into_owned()).await;
                }
                drop(seat);
            });
        }
        drop(self.listener);
        self.ending.begin();
        let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
        Ok(())
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
        let (limits, ending) = (self.shared.limits, self.shared.ending.clone());
        let stream = Patient::new(stream, limits.silence, Arc::clone(&self.shared.slow));
        let (mut builder, graceful) = (builder(limits), GracefulShutdown::new());
        // Whoever writes a request and closes the pipe still gets the answer.
        builder.http1().half_close(true);
        let service = TowerToHyperService::new(self.router());
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let serving = graceful.watch(connection);
        tokio::pin!(end, serving);
        tokio::select! {
            _ = &mut serving => return Ok(()),
            () = &mut end => ending.begin(),
        }
        let ended = async { tokio::join!(graceful.shutdown(), serving) };
        let _ = tokio::time::timeout(GRACE, ended).await;
        Ok(())
    }
}

/// Returns how connections are served.
fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.silence);
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
