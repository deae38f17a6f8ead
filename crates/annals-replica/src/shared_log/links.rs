//! Links of loopback between servers and clients of a test, which can be cut as a network is: what is sent waits, and nobody
//! sees an end.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use annals_storage::{Clock as _, SystemClock};

/// How often a link that is cut looks if it still is.
const LOOK: Duration = Duration::from_millis(5);

/// A port whose connections lead to another one.
#[derive(Debug)]
pub(super) struct Link {
    port: u16,
    /// `None`: it is that port itself.
    state: Option<Arc<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: AtomicBool,
    is_over: AtomicBool,
}

impl Link {
    /// Makes a link to a port, where nobody needs to listen yet.
    pub(super) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Without a server the connection ends.
                let server = TcpStream::connect(("127.0.0.1", target));
                if let (Ok(client), Ok(server)) = (stream, server) {
                    join(&client, &server, &of_thread);
                }
            }
        });
        Self { port, state: Some(state) }
    }

    /// Makes a way to a port with nothing between, which can't be cut.
    pub(super) fn direct(port: u16) -> Self {
        Self { port, state: None }
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn set_cut(&self, is_cut: bool) {
        if let Some(state) = &self.state {
            state.is_cut.store(is_cut, Ordering::SeqCst);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            state.is_over.store(true, Ordering::SeqCst);
            // Wakes the thread that accepts.
            let _ = TcpStream::connect(("127.0.0.1", self.port));
        }
    }
}

/// Passes on what two connections send.
fn join(client: &TcpStream, server: &TcpStream, state: &Arc<State>) {
    for (from, to) in [(client, server), (server, client)] {
        let _ = from.set_nodelay(true);
        if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
            let state = Arc::clone(state);
            thread::spawn(move || copy(from, to, &state));
        }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut bytes = [0; 16 << 10];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        while state.is_cut.load(Ordering::SeqCst) && !state.is_over.load(Ordering::SeqCst) {
            SystemClock.pause(LOOK);
        }
        if to.write_all(bytes.get(..len).unwrap_or_default()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
