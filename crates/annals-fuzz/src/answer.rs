//! What a server may answer to a client.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use annals::storage::MemoryDirectory;
use annals::{Cursor, Txid};
use annals_replica::{Connection as _, Http};
use annals_storage::Spool;

use crate::memory::peak;

/// What a status can be.
const STATUSES: [u16; 16] =
    [200, 200, 200, 200, 204, 301, 400, 401, 404, 409, 410, 412, 422, 500, 503, 507];
/// So much memory a client may take besides what is in proportion to the answer.
const SPARE: usize = 4 << 20;

/// A server that answers everything with the same bytes.
struct Parrot {
    url: String,
    answer: Arc<Mutex<Vec<u8>>>,
}

/// Takes the bytes for the answer of a server: after a first byte that says what it is asked, and a second one for the
/// status, or for none, lines with headers, an empty line, and the body.
///
/// # Panics
/// If the client panics, or its memory grows out of proportion.
pub fn answer(input: &[u8]) {
    let [asked, status, rest @ ..] = input else { return };
    // What has a length that it doesn't fulfil ends with the connection; what goes on elsewhere isn't followed here.
    let mut bytes = Vec::new();
    if let Some(status) = STATUSES.get(usize::from(*status)) {
        bytes = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n").into_bytes();
        for byte in rest {
            match byte {
                b'\n' if !bytes.ends_with(b"\r") => bytes.extend_from_slice(b"\r\n"),
                byte => bytes.push(*byte),
            }
        }
    } else {
        bytes.extend_from_slice(rest);
    }
    if bytes.windows(9).any(|it| it.eq_ignore_ascii_case(b"location:")) {
        return;
    }
    let Some(parrot) = parrot() else { return };
    *parrot.answer.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    let (_, taken) = peak(|| ask(&parrot.url, *asked));
    let most = SPARE + 16 * input.len();
    assert!(taken < most, "{taken} bytes for an answer of {}", input.len());
}

/// Asks the server something; whatever it answers is an answer or an error.
fn ask(url: &str, asked: u8) {
    let Ok(http) = Http::new(url, None) else { return };
    let cursor = Cursor { txid: Txid(3), chain: 7 };
    let spool = || Spool::new(Arc::new(MemoryDirectory::new()), "spool".to_owned(), 0);
    match asked % 4 {
        0 => drop(http.describe()),
        1 => drop(http.chains(&[Txid(1), Txid(2)])),
        2 => drop(http.pull(Some(cursor), Duration::ZERO, &mut spool())),
        _ => {
            let mut frames = spool();
            if frames.append(b"frames").is_ok() {
                drop(http.push(cursor, &frames, None));
            }
        }
    }
}

fn parrot() -> Option<&'static Parrot> {
    static PARROT: OnceLock<Option<Parrot>> = OnceLock::new();
    let start = || {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let url = format!("http://{}/v1/db", listener.local_addr().ok()?);
        let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
        let repeated = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bytes = repeated.lock().unwrap_or_else(PoisonError::into_inner).clone();
                repeat(stream, &bytes);
            }
        });
        Some(Parrot { url, answer })
    };
    PARROT.get_or_init(start).as_ref()
}

fn repeat(mut stream: TcpStream, bytes: &[u8]) {
    // The request, or its beginning.
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let _ = stream.read(&mut [0; 4096]);
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    // What is left to be read would turn the end into a reset.
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    let _ = stream.read(&mut [0; 4096]);
}
