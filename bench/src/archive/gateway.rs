//! The S3 server, and a counter before it.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3, AmazonS3Builder};

use crate::engines::Failure;

pub(super) const KEY: &str = "testkey";
pub(super) const SECRET: &str = "testsecret";
pub(super) const REGION: &str = "us-east-1";
/// The end of the first line of a request.
const REQUEST: &[u8] = b" HTTP/1.1\r\n";

/// Returns the path of a program that is in the path or where Go installs it.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([home.join("go/bin")]);
    folders.map(|it| it.join(name)).find(|file| file.is_file())
}

/// The server, which ends with this.
pub(super) struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gateway {
    pub(super) fn start(folder: &Path) -> Result<Self, Failure> {
        let program = program("versitygw").ok_or(
            "no versitygw here; go install github.com/versity/versitygw/cmd/versitygw@latest",
        )?;
        std::fs::create_dir_all(folder.join("s3/bucket"))?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = Command::new(program)
            .args(["--port", &address.to_string(), "--quiet", "posix", "s3"])
            .current_dir(folder)
            .envs([("ROOT_ACCESS_KEY", KEY), ("ROOT_SECRET_KEY", SECRET)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let gateway = Self { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err("versitygw doesn't answer".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(gateway)
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn store(&self) -> Result<AmazonS3, Failure> {
        store(&self.endpoint())
    }

    /// Puts a counter before it.
    pub(super) fn counted(&self) -> Result<Counter, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (port, target) = (listener.local_addr()?.port(), self.address);
        let seen = Arc::new(Seen::default());
        let counter = Counter { port, seen: Arc::clone(&seen) };
        thread::spawn(move || {
            for client in listener.incoming() {
                if seen.is_cut.load(Ordering::SeqCst) {
                    return;
                }
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(target)) {
                    join(&client, &server, &seen);
                }
            }
        });
        Ok(counter)
    }
}

/// Returns the store at an address.
pub(super) fn store(endpoint: &str) -> Result<AmazonS3, Failure> {
    let builder = AmazonS3Builder::new()
        .with_bucket_name("bucket")
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region(REGION)
        .with_access_key_id(KEY)
        .with_secret_access_key(SECRET);
    Ok(builder.build()?)
}

/// A way to the server on which bytes and requests are counted, until it is cut.
pub(super) struct Counter {
    port: u16,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    bytes: AtomicU64,
    requests: AtomicU64,
    is_cut: AtomicBool,
}

impl Counter {
    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns how many bytes and requests were sent to the server.
    pub(super) fn sent(&self) -> (u64, u64) {
        (self.seen.bytes.load(Ordering::SeqCst), self.seen.requests.load(Ordering::SeqCst))
    }

    /// Lets nothing more through, as if whoever sends was killed.
    pub(super) fn cut(&self) {
        self.seen.is_cut.store(true, Ordering::SeqCst);
    }
}

fn join(client: &TcpStream, server: &TcpStream, seen: &Arc<Seen>) {
    for (from, to, is_request) in [(client, server, true), (server, client, false)] {
        let _ = from.set_nodelay(true);
        if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
            let seen = Arc::clone(seen);
            thread::spawn(move || copy(from, to, &seen, is_request));
        }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, seen: &Seen, is_request: bool) {
    let mut bytes = vec![0; 256 << 10];
    // The end of what came before, in which a request may begin.
    let mut carried = 0;
    while let Ok(len @ 1..) = from.read(&mut bytes[carried..]) {
        if seen.is_cut.load(Ordering::SeqCst) {
            break;
        }
        if is_request {
            seen.bytes.fetch_add(len as u64, Ordering::SeqCst);
            let whole = &bytes[..carried + len];
            let requests = whole.windows(REQUEST.len()).filter(|it| *it == REQUEST).count();
            seen.requests.fetch_add(requests as u64, Ordering::SeqCst);
        }
        if to.write_all(&bytes[carried..carried + len]).is_err() {
            break;
        }
        let kept = (carried + len).min(REQUEST.len() - 1);
        bytes.copy_within(carried + len - kept..carried + len, 0);
        carried = kept;
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
