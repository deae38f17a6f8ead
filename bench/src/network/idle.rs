//! What subscribers cost that wait for news.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use annals::ValueRef;

use super::{ITEM, Load, Running, create};
use crate::engines::Failure;
use crate::figures::Measured;
use crate::memory;

/// Measures the memory of subscribers that wait, and how long it takes until all have a transaction.
///
/// The server is in this process, and the subscribers are sockets without buffers: so nearly all is the server's.
pub(super) fn measure(load: &Load, folder: &Path, measured: &mut Measured) -> Result<(), Failure> {
    let database = create(&folder.join("idle"))?;
    let running = Running::start(database.clone())?;
    // What the first ones cost is needed once.
    let _first = (0..8).map(|_| subscribe(&running)).collect::<Result<Vec<_>, _>>()?;
    let unknown = "the system doesn't say how much memory it has";
    let before = memory::resident().ok_or(unknown)?;
    let waiting = (0..load.subscribers).map(|_| subscribe(&running));
    let mut waiting = waiting.collect::<Result<Vec<_>, _>>()?;
    let after = memory::resident().ok_or(unknown)?;
    let held = after.saturating_sub(before);
    measured.add("Annals", ("all subscribers, waiting", "MiB"), memory::mib(held));
    let begun = Instant::now();
    database.write(|tx| tx.insert(ITEM, &[ValueRef::Bytes(b"row")]))?;
    for subscriber in &mut waiting {
        wait_for(subscriber, b"\"changes\"")?;
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    measured.add("Annals", ("until each has a transaction", "ms"), took);
    Ok(())
}

/// Asks for events; returns once the server says that there is nothing new.
fn subscribe(running: &Running) -> Result<TcpStream, Failure> {
    let address = running.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let request =
        "GET /v1/origin/changes HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    wait_for(&mut stream, b"}\n\n")?;
    Ok(stream)
}

/// Reads until some bytes have come.
fn wait_for(stream: &mut TcpStream, wanted: &[u8]) -> Result<(), Failure> {
    let (mut read, mut piece) = (Vec::new(), [0; 512]);
    while !read.windows(wanted.len()).any(|found| found == wanted) {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err("a subscription ended".into());
        }
        read.extend_from_slice(&piece[..count]);
    }
    Ok(())
}
