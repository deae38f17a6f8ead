//! Lazy replicas of files on an ordinary web server, which knows nothing of databases.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use annals::{BackfillMode, ErrorKind, Options};
use annals_replica::lazy::Web;
use annals_replica::lazy::testing::{QUESTIONS, answers, create, touch};
use annals_replica::{Fetching, Lazy, Patience};
use axum::Router;
use axum::http::header;
use tokio::sync::oneshot;
use tower_http::services::ServeDir;

const PERSONS: u64 = 20_000;

/// A web server of a folder.
struct WebServer {
    url: String,
    requests: Arc<AtomicU64>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    fn start(folder: &Path) -> Self {
        Self::of(Router::new().fallback_service(ServeDir::new(folder)))
    }

    fn of(routes: Router) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&requests);
        let count = move |request: axum::extract::Request, next: axum::middleware::Next| {
            counted.fetch_add(1, Ordering::SeqCst);
            next.run(request)
        };
        let routes = routes.layer(axum::middleware::from_fn(count));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let serve = axum::serve(listener, routes);
            let serve = serve.with_graceful_shutdown(async { drop(ended.await) });
            runtime.block_on(std::future::IntoFuture::into_future(serve)).unwrap();
        });
        Self { url, requests, end: Some(end), thread: Some(thread) }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn open(url: &str) -> annals::Result<Lazy> {
    let patience =
        Patience { deadline: Duration::from_millis(200), pause: Duration::from_millis(1) };
    let fetching = Fetching { patience, ..Fetching::default() };
    Lazy::in_memory(Arc::new(Web::new(url, None)?), &Options::new(), fetching)
}

#[test]
fn files_on_a_web_server_are_a_database_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my data.annals");
    let database = create(&path, PERSONS);
    database.backfill(BackfillMode::Restart).unwrap();
    (0..5).for_each(|_| touch(&database, PERSONS));
    database.close().unwrap();
    let (server, expected) = (WebServer::start(folder.path()), answers(&path));
    let lazy = open(&format!("{}/my%20data.annals", server.url)).unwrap();
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        let answer = lazy.ask(ask);
        assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
    }
    let all = lazy.fetched();
    assert!(all.bytes < lazy.size() / 2, "{all:?} of {}", lazy.size());
    // Looking for the image and the journal are two of what is counted as one.
    let sent = server.requests.load(Ordering::SeqCst);
    assert!((all.requests..=all.requests + 2).contains(&sent), "{sent} {all:?}");
    assert_eq!(
        open(&format!("{}/other.annals", server.url)).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let address = server.url.clone();
    drop(server);
    let error = open(&format!("{address}/my%20data.annals")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}

#[test]
fn files_that_change_under_way_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, PERSONS);
    let server = WebServer::start(folder.path());
    let lazy = open(&format!("{}/a.annals", server.url)).unwrap();
    let before = lazy.read().txid();
    // The tags of this server are times in whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..3 {
        (0..50).for_each(|_| touch(&database, PERSONS));
        database.backfill(BackfillMode::Full).unwrap();
    }
    let expected = answers(&path);
    let (_, ask) = QUESTIONS[1];
    assert_eq!(ask(&lazy.reader()).unwrap_err().kind(), ErrorKind::Forgotten);
    assert_eq!(lazy.read().txid(), before);
    for ((name, ask), expected) in QUESTIONS.iter().zip(&expected) {
        let answer = lazy.ask(ask);
        assert_eq!(answer.as_ref().ok(), Some(expected), "{name}: {answer:?}");
    }
    assert!(lazy.read().txid() > before);
}

#[test]
fn a_web_server_without_ranges_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    drop(create(&folder.path().join("a.annals"), 1000));
    let without = |mut request: axum::extract::Request, next: axum::middleware::Next| {
        request.headers_mut().remove(header::RANGE);
        next.run(request)
    };
    let files = Router::new().fallback_service(ServeDir::new(folder.path()));
    let server = WebServer::of(files.layer(axum::middleware::from_fn(without)));
    let error = open(&format!("{}/a.annals", server.url)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("Range"), "{error}");
    assert!(server.requests.load(Ordering::SeqCst) < 3, "it isn't tried again");
    // Something else than what was asked for.
    let server =
        WebServer::of(Router::new().fallback(async || (axum::http::StatusCode::BAD_GATEWAY, "no")));
    let error = open(&format!("{}/a.annals", server.url)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(server.requests.load(Ordering::SeqCst) > 3, "it may be back soon");
}
