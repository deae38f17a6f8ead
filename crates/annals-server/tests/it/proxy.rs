//! A proxy that breaks connections: after so many bytes of one direction, or by holding them back.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// Bytes that may still pass in each direction; negative: any number.
#[derive(Debug)]
struct Plan {
    to_server: AtomicI64,
    to_client: AtomicI64,
    /// The pause before each piece, in microseconds.
    delay: AtomicU64,
    cuts: AtomicU64,
}

impl Plan {
    fn left(&self, direction: Direction) -> &AtomicI64 {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

/// It listens at a port of its own until the test ends.
pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Plan>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::new(Plan {
            to_server: AtomicI64::new(-1),
            to_client: AtomicI64::new(-1),
            delay: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
        });
        let of_thread = Arc::clone(&plan);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                pass(&client, &server, Direction::ToServer, &of_thread);
                pass(&server, &client, Direction::ToClient, &of_thread);
            }
        });
        Self { address, plan }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts the connection, once, after so many further bytes of a direction.
    pub(crate) fn cut_after(&self, direction: Direction, bytes: i64) {
        self.plan.left(direction).store(bytes, Ordering::SeqCst);
    }

    /// Holds each piece back for so long.
    pub(crate) fn delay(&self, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap();
        self.plan.delay.store(micros, Ordering::SeqCst);
    }

    /// Returns how many connections were cut.
    pub(crate) fn cuts(&self) -> u64 {
        self.plan.cuts.load(Ordering::SeqCst)
    }
}

/// Passes bytes on, in a thread, until the plan says otherwise.
fn pass(from: &TcpStream, to: &TcpStream, direction: Direction, plan: &Arc<Plan>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let plan = Arc::clone(plan);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let delay = plan.delay.load(Ordering::SeqCst);
            if delay > 0 {
                thread::sleep(Duration::from_micros(delay));
            }
            let left = plan.left(direction);
            let allowed = left.load(Ordering::SeqCst);
            let (count, is_cut) = match usize::try_from(allowed) {
                Err(_) => (read, false),
                Ok(allowed) => (read.min(allowed), read > allowed),
            };
            let _ = to.write_all(&buffer[..count]);
            if is_cut {
                left.store(-1, Ordering::SeqCst);
                plan.cuts.fetch_add(1, Ordering::SeqCst);
                let _ = from.shutdown(Shutdown::Both);
                break;
            }
            if allowed >= 0 {
                left.fetch_sub(i64::try_from(count).unwrap(), Ordering::SeqCst);
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
