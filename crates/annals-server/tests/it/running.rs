//! A server in a thread of the test.

use std::thread::JoinHandle;

use annals_server::Server;
use tokio::sync::oneshot;

/// A server that ends when this is dropped.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) address: std::net::SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(server: Server) -> Self {
        Self::with_threads(server, 512)
    }

    /// Starts a server that has so many threads for work that may block.
    pub(crate) fn with_threads(server: Server, blocking: usize) -> Self {
        // The clients of the tests need it; another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).max_blocking_threads(blocking).enable_all();
        let runtime = builder.build().unwrap();
        let listening = runtime.block_on(server.listen("127.0.0.1:0")).unwrap();
        let (url, address) = (listening.url(), listening.address());
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let run = listening.run(async { drop(ended.await) });
            runtime.block_on(run).unwrap();
        });
        Self { url, address, end: Some(end), thread: Some(thread) }
    }

    /// Returns the URL of a database.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("{}/v1/{name}", self.url)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
