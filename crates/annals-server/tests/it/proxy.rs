//! A proxy between clients and a server that cuts, delays, repeats and reorders what they say, as a plan has it.
//!
//! An exchange is a request and its answer. A request is read whole before any of it is passed on, so that it can come late or
//! twice; an answer is passed on as it comes.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use annals_simulated::Rng;

/// Whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// What befalls an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ends after so many bytes of a direction.
    Cut(Direction, usize),
    /// It stands still for a moment after so many bytes of a direction.
    Delay(Direction, usize),
    /// The client sees its connection end. The server has so many bytes of the request, and gets the rest after so many
    /// further requests: so a request arrives after its repetition, or after newer ones.
    Late { bytes: usize, after: usize },
    /// The server gets the request once more, after so many further requests; with 0 at the same time.
    Twice { after: usize },
    /// The client gets this answer, which the server never gave. The server gets the request after so many further
    /// requests; with 0 at once.
    Invented { answer: &'static str, after: usize },
}

/// Answers that something between, or a server that is none any more, gives to what it has passed on.
pub(crate) const INVENTED: [&str; 9] = [
    "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 6\r\nAnnals-Next: 9:00c0ffee00c0ffee\r\n\r\n<html>",
    "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>",
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n",
];

/// How long a connection stands still.
const STILL: Duration = Duration::from_millis(2);
/// How long the server has for the answer to a request whose client is gone, and how long other requests wait for that: it
/// may stand in line after them.
const ANSWER: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_millis(50);
/// Faults of random plans are within so many bytes: the heads of all requests, and most bodies.
const REACH: u64 = 700;

/// A request, or the rest of one, that the server gets later.
struct Held {
    after: usize,
    server: TcpStream,
    rest: Vec<u8>,
}

impl Held {
    /// Lets the server have it; returns when the server has answered, which it usually does at once.
    fn deliver(mut self) {
        let (done, is_done) = channel();
        thread::spawn(move || {
            let _ = self.server.set_read_timeout(Some(ANSWER));
            let _ =
                self.server.write_all(&self.rest).and_then(|()| self.server.read(&mut [0; 1024]));
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(PATIENCE);
    }
}

/// A source of faults.
struct Random {
    rng: Rng,
    /// So many of 100 exchanges have one.
    share: u64,
    /// True if only what may change something is cut off or late.
    spares_reads: bool,
}

impl Random {
    fn fault(&mut self, request: &[u8]) -> Option<Fault> {
        let Self { rng, share, spares_reads } = self;
        if !rng.percent(*share) {
            return None;
        }
        let bytes = usize::try_from(rng.below(REACH)).unwrap();
        let after = rng.index(6);
        let kinds = if *spares_reads && !request.starts_with(b"POST") { 3 } else { 6 };
        Some(match rng.index(kinds) {
            0 => Fault::Delay(Direction::ToServer, bytes),
            1 => Fault::Delay(Direction::ToClient, bytes),
            2 => Fault::Twice { after },
            3 => Fault::Cut(Direction::ToServer, bytes),
            4 => Fault::Cut(Direction::ToClient, bytes),
            _ => Fault::Late { bytes, after },
        })
    }
}

#[derive(Default)]
struct Plan {
    /// What befalls the next exchange.
    next: Option<Fault>,
    random: Option<Random>,
    held: Vec<Held>,
    /// How many faults there were.
    faults: u64,
}

impl Plan {
    /// Returns the fault of an exchange that begins.
    fn begin(&mut self, request: &[u8]) -> Option<Fault> {
        let random = self.random.as_mut().and_then(|random| random.fault(request));
        let fault = self.next.take().or(random)?;
        let befalls = match fault {
            Fault::Cut(Direction::ToServer, bytes)
            | Fault::Delay(Direction::ToServer, bytes)
            | Fault::Late { bytes, .. } => bytes < request.len(),
            _ => true,
        };
        befalls.then_some(fault)
    }

    /// Counts a request; returns those that come before it.
    fn due(&mut self) -> Vec<Held> {
        let held = std::mem::take(&mut self.held);
        let (due, later): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| held.after <= 1);
        self.held = later.into_iter().map(|held| Held { after: held.after - 1, ..held }).collect();
        due
    }
}

/// It listens at a port of its own until the test ends.
pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::default();
        let of_thread = Arc::clone(&plan);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let plan = Arc::clone(&of_thread);
                thread::spawn(move || {
                    let _ = serve(&client, server, &plan);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, plan }
    }

    /// Returns the URL of a database.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("http://{}/v1/{name}", self.address)
    }

    /// Lets a fault befall the next exchange.
    pub(crate) fn next(&self, fault: Fault) {
        self.plan.lock().unwrap().next = Some(fault);
    }

    /// Lets faults befall so many of 100 exchanges, until the next call.
    pub(crate) fn follow(&self, seed: u64, share: u64) {
        let rng = Rng::new(seed);
        self.plan.lock().unwrap().random = Some(Random { rng, share, spares_reads: false });
    }

    /// Does what [`follow`](Self::follow) does, but only pushes are cut off or late.
    pub(crate) fn follow_pushes(&self, seed: u64, share: u64) {
        let rng = Rng::new(seed);
        self.plan.lock().unwrap().random = Some(Random { rng, share, spares_reads: true });
    }

    /// Has no more faults, and delivers what the server is still to get.
    pub(crate) fn settle(&self) {
        let mut plan = self.plan.lock().unwrap();
        (plan.next, plan.random) = (None, None);
        let held = std::mem::take(&mut plan.held);
        drop(plan);
        held.into_iter().for_each(Held::deliver);
    }

    /// Returns how many exchanges had a fault.
    pub(crate) fn faults(&self) -> u64 {
        self.plan.lock().unwrap().faults
    }
}

/// Passes on the requests of a connection until it ends.
fn serve(client: &TcpStream, address: SocketAddr, plan: &Arc<Mutex<Plan>>) -> Result<()> {
    let server = TcpStream::connect(address)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let answering = Arc::new(Mutex::new(None));
    let (from, to, of_thread) = (server.try_clone()?, client.try_clone()?, Arc::clone(&answering));
    let counting = Arc::clone(plan);
    let answers = thread::spawn(move || pass_answers(&from, &to, &of_thread, &counting));
    let served = pass_requests(client, &server, plan, &answering);
    // The end of a request that was cut off is the end of all.
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
    let _ = answers.join();
    served
}

/// What befalls the answers of a connection.
type Answering = Mutex<Option<Fault>>;

fn pass_requests(
    mut client: &TcpStream,
    mut server: &TcpStream,
    plan: &Mutex<Plan>,
    answering: &Answering,
) -> Result<()> {
    let address = server.peer_addr()?;
    let mut read = Vec::new();
    while let Some(request) = next_request(&mut client, &mut read)? {
        let due = plan.lock().unwrap().due();
        due.into_iter().for_each(Held::deliver);
        let fault = plan.lock().unwrap().begin(&request);
        let count = || plan.lock().unwrap().faults += 1;
        let hold = |after, bytes: usize| {
            let mut server = TcpStream::connect(address)?;
            server.write_all(&request[..bytes])?;
            let held = Held { after, server, rest: request[bytes..].to_vec() };
            Ok::<_, Error>(held)
        };
        *answering.lock().unwrap() = None;
        match fault {
            None => {}
            Some(Fault::Cut(Direction::ToServer, bytes)) => {
                count();
                return server.write_all(&request[..bytes]);
            }
            Some(Fault::Delay(Direction::ToServer, bytes)) => {
                count();
                let (first, rest) = request.split_at(bytes.min(request.len()));
                server.write_all(first)?;
                thread::sleep(STILL);
                server.write_all(rest)?;
                continue;
            }
            // They are counted when the answer is so long.
            Some(Fault::Cut(..) | Fault::Delay(..)) => *answering.lock().unwrap() = fault,
            Some(Fault::Late { bytes, after }) => {
                count();
                let held = hold(after, bytes)?;
                client.shutdown(Shutdown::Both)?;
                if after == 0 {
                    held.deliver();
                } else {
                    plan.lock().unwrap().held.push(held);
                }
                return Ok(());
            }
            Some(Fault::Invented { answer, after }) => {
                count();
                let held = hold(after, 0)?;
                if after == 0 {
                    held.deliver();
                } else {
                    plan.lock().unwrap().held.push(held);
                }
                client.write_all(answer.as_bytes())?;
                continue;
            }
            Some(Fault::Twice { after }) => {
                count();
                let held = hold(after, 0)?;
                if after == 0 {
                    thread::spawn(|| held.deliver());
                } else {
                    plan.lock().unwrap().held.push(held);
                }
            }
        }
        server.write_all(&request)?;
    }
    Ok(())
}

/// Returns the next request, whole; `None` at the end of the connection. Bytes after it stay in `read`.
fn next_request(client: &mut &TcpStream, read: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if let Some(len) = len_of(read).filter(|len| *len <= read.len()) {
            let rest = read.split_off(len);
            return Ok(Some(std::mem::replace(read, rest)));
        }
        match client.read(&mut piece)? {
            0 if read.is_empty() => return Ok(None),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => read.extend_from_slice(&piece[..count]),
        }
    }
}

/// Returns the length of a request, once its head is whole.
fn len_of(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?.to_ascii_lowercase();
    assert!(!text.contains("transfer-encoding"), "the proxy can't repeat a body without a length");
    let body = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    Some(head + body.unwrap_or(0))
}

/// Passes on the answers of a connection until it ends.
fn pass_answers(
    mut from: &TcpStream,
    mut to: &TcpStream,
    answering: &Answering,
    plan: &Mutex<Plan>,
) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let mut bytes = &piece[..count];
        let mut answering = answering.lock().unwrap();
        match &mut *answering {
            Some(Fault::Cut(_, left) | Fault::Delay(_, left)) if *left >= count => *left -= count,
            Some(Fault::Cut(_, left)) => {
                plan.lock().unwrap().faults += 1;
                let _ = to.write_all(&bytes[..*left]);
                break;
            }
            Some(Fault::Delay(_, left)) => {
                plan.lock().unwrap().faults += 1;
                let first;
                (first, bytes) = bytes.split_at(*left);
                let _ = to.write_all(first);
                thread::sleep(STILL);
                *answering = None;
            }
            _ => {}
        }
        drop(answering);
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
