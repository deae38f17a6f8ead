//! The writers, and what they are told.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};

use super::{COUNT, WRITERS, below, millis, pause};

/// How long an answer is waited for: longer than a node tries.
const PATIENCE: Duration = Duration::from_secs(60);
/// The bytes of a row for which a journal has no room left on a full disk: it takes some ahead.
const LARGE: usize = 900_000;

/// What is known of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Acknowledged,
    /// Nothing was changed.
    Refused,
    Unknown,
}

/// A request to a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) node: usize,
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) told: Told,
}

/// What writers noted.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    ends: AtomicBool,
    pub(super) transactions: Mutex<BTreeMap<String, Told>>,
    pub(super) requests: Mutex<Vec<Request>>,
    /// How often each kind of refusal was met.
    pub(super) refusals: Mutex<BTreeMap<String, u64>>,
}

impl Ledger {
    /// Lets the writers end.
    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
    }

    /// Returns how many transactions were acknowledged, refused, and are unknown.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let transactions = self.transactions.lock().unwrap();
        let count = |told| transactions.values().filter(|it| **it == told).count();
        (count(Told::Acknowledged), count(Told::Refused), count(Told::Unknown))
    }

    /// Waits until each node has acknowledged something.
    pub(super) fn wait_for_all_nodes(&self) {
        let until = SystemClock.elapsed() + PATIENCE;
        let is_there = |node| {
            let requests = self.requests.lock().unwrap();
            requests.iter().any(|it| it.node == node && it.told == Told::Acknowledged)
        };
        while !(0..COUNT).all(is_there) {
            assert!(SystemClock.elapsed() < until, "a node takes nothing: {:?}", self.refusals);
            pause(millis(50));
        }
    }

    /// Sends a transaction for which there is no room in the file of a node whose disk is full.
    pub(super) fn send_large(&self, addresses: &[String], node: usize) {
        let name = format!("{:?}-{}", SystemClock.elapsed(), "x".repeat(LARGE));
        let told = self.send(addresses, node, &name, false);
        self.transactions.lock().unwrap().insert(name, told);
    }

    /// Sends a transaction, once.
    fn send(&self, addresses: &[String], node: usize, name: &str, has_key: bool) -> Told {
        let begun = SystemClock.elapsed();
        let (told, reason) = post(&addresses[node], name, has_key);
        let ended = SystemClock.elapsed();
        self.requests.lock().unwrap().push(Request { node, begun, ended, told });
        if told != Told::Acknowledged {
            *self.refusals.lock().unwrap().entry(format!("{told:?}: {reason}")).or_default() += 1;
        }
        told
    }
}

/// Sends transactions to a node until it is to end.
pub(super) fn write(ledger: &Ledger, addresses: &[String], writer: usize) {
    let (mut node, has_key) = (writer % COUNT, writer / COUNT * 2 >= WRITERS);
    for number in 0_u64.. {
        if ledger.ends.load(Ordering::SeqCst) {
            return;
        }
        let name = format!("{writer}-{number}");
        let mut told = ledger.send(addresses, node, &name, has_key);
        if has_key {
            // The same request at the next node: what the first one has done counts once.
            let mut is_unknown = false;
            while told != Told::Acknowledged && !ledger.ends.load(Ordering::SeqCst) {
                is_unknown |= told == Told::Unknown;
                node = (node + 1) % COUNT;
                pause(millis(20));
                told = ledger.send(addresses, node, &name, true);
            }
            if told == Told::Refused && is_unknown {
                told = Told::Unknown;
            }
            node = writer % COUNT;
        }
        ledger.transactions.lock().unwrap().insert(name, told);
        pause(millis(if told == Told::Acknowledged { 5 + below(40) } else { 50 }));
    }
}

/// Asks a node to insert a row; returns what it tells, and why.
fn post(address: &str, name: &str, has_key: bool) -> (Told, String) {
    let Ok(mut stream) =
        TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(5))
    else {
        return (Told::Refused, "it doesn't listen".to_owned());
    };
    let body = format!(
        "{{\"changes\":[{{\"op\":\"insert\",\"table\":\"op\",\"fields\":{{\"k\":\"{name}\"}}}}]}}"
    );
    let key = if has_key { format!("Idempotency-Key: {name}\r\n") } else { String::new() };
    let request = format!(
        "POST /v1/ledger/transactions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n{key}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = String::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let answered =
        stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    let Some((head, body)) = answer.split_once("\r\n\r\n").filter(|_| answered.is_ok()) else {
        return (Told::Unknown, "no answer".to_owned());
    };
    let status = head.split(' ').nth(1).unwrap_or_default();
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    if status == "200" {
        return (Told::Acknowledged, String::new());
    }
    let error = body["error"].as_str().unwrap_or_default();
    let told = if error == "unknown" || error.is_empty() { Told::Unknown } else { Told::Refused };
    let message = body["message"].as_str().unwrap_or_default();
    // Without numbers it is a kind.
    let kind: String = message.chars().filter(|it| !it.is_ascii_digit()).take(120).collect();
    (told, format!("{status} {error}: {kind}"))
}
