//! A way to a database that a program speaks for on its standard input and output: `annals serve --stdio`, under ssh.
//!
//! ```text
//! Http ─► a socket in a private folder ─► a thread for each connection ─► ssh HOST annals serve PATH --stdio
//! ```
//!
//! One connection carries all requests (HTTP/2), since one program at a time can have the file open for writing.

use annals::{Error, Result};
use reqwest::{ClientBuilder, Url};

#[cfg(not(unix))]
pub(crate) use absent::Tunnel;
#[cfg(unix)]
pub(crate) use present::Tunnel;

/// Returns a text as one word of a shell.
#[cfg(unix)]
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Takes `%20` and the like out of a part of a URL.
#[cfg(unix)]
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(unix)]
mod present {
    use std::fmt;
    use std::io::{self, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::fs::DirBuilderExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread::JoinHandle;

    use annals::ErrorKind;
    use annals::storage::{Clock as _, SystemClock};

    use super::{ClientBuilder, Error, Result, Url, decoded, quoted};

    /// How many bytes are copied at a time.
    const PIECE: usize = 64 << 10;

    /// A socket that leads to a program on another machine.
    pub(crate) struct Tunnel {
        name: String,
        folder: PathBuf,
        shared: Arc<Shared>,
        thread: Option<JoinHandle<()>>,
    }

    impl fmt::Debug for Tunnel {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Tunnel for {}", self.name)
        }
    }

    struct Shared {
        program: String,
        arguments: Vec<String>,
        is_over: AtomicBool,
        /// Why the last program ended, if it wasn't well.
        failure: Mutex<Option<String>>,
    }

    impl Tunnel {
        /// Returns a tunnel for a URL, if it is one of ssh.
        pub(crate) fn of(url: &Url, wrong: impl Fn(&str) -> Error) -> Result<Option<Self>> {
            if url.scheme() != "ssh" {
                return Ok(None);
            }
            let host = url.host_str().filter(|host| !host.is_empty() && !host.starts_with('-'));
            let host = host.ok_or_else(|| wrong("it has no host"))?;
            let path = decoded(url.path()).ok_or_else(|| wrong("its path isn't text"))?;
            let path = path.strip_prefix("/~/").unwrap_or(&path).to_owned();
            let stem = std::path::Path::new(&path).file_stem().and_then(|stem| stem.to_str());
            let stem = stem.ok_or_else(|| wrong("its path names no file"))?.to_owned();
            let user = decoded(url.username()).ok_or_else(|| wrong("its user isn't text"))?;
            let to = match user.as_str() {
                "" => host.to_owned(),
                user if user.starts_with('-') => return Err(wrong("no user begins with -")),
                user => format!("{user}@{host}"),
            };
            let variable = |name: &str, usual: &str| {
                let value = std::env::var(name).ok().filter(|value| !value.is_empty());
                value.unwrap_or_else(|| usual.to_owned())
            };
            let port = url.port().map(|port| ["-p".to_owned(), port.to_string()]);
            // A path that begins with - is no option.
            let path = if path.starts_with('-') { format!("./{path}") } else { path };
            let remote = variable("ANNALS_REMOTE", "annals");
            let command = format!("{remote} serve --stdio {}", quoted(&path));
            let mut arguments: Vec<_> = port.into_iter().flatten().collect();
            arguments.extend([to, command]);
            let program = variable("ANNALS_SSH", "ssh");
            Self::start(stem, program, arguments).map(Some).map_err(|error| {
                Error::io("cannot create a socket for ssh in the folder for temporary files", error)
            })
        }

        fn start(name: String, program: String, arguments: Vec<String>) -> io::Result<Self> {
            let folder = std::env::temp_dir().join(format!("annals-{:016x}", SystemClock.random()));
            // Nobody else may use what ssh has let this user do.
            std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
            let listener = UnixListener::bind(folder.join("socket"))?;
            let (is_over, failure) = (AtomicBool::new(false), Mutex::default());
            let shared = Arc::new(Shared { program, arguments, is_over, failure });
            let accepting = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("annals-ssh".to_owned());
            let thread = thread.spawn(move || accept(&listener, &accepting))?;
            Ok(Self { name, folder, shared, thread: Some(thread) })
        }

        /// Returns the URL of the database at the other end.
        pub(crate) fn url(&self) -> Result<Url> {
            let mut url = Url::parse("http://localhost/v1/")
                .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
            if let Ok(mut names) = url.path_segments_mut() {
                names.pop_if_empty().push(&self.name);
            }
            Ok(url)
        }

        /// Lets a client connect through this only.
        pub(crate) fn lead(&self, client: ClientBuilder) -> ClientBuilder {
            client.unix_socket(self.folder.join("socket")).http2_prior_knowledge()
        }

        /// Returns why the last program ended, if it wasn't well.
        pub(crate) fn failure(&self) -> Option<String> {
            self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl Drop for Tunnel {
        /// Waits until the programs have closed the database.
        fn drop(&mut self) {
            self.shared.is_over.store(true, Ordering::Release);
            // Wakes the thread.
            let _ = UnixStream::connect(self.folder.join("socket"));
            let _ = self.thread.take().map(JoinHandle::join);
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
        let mut passing = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            if shared.is_over.load(Ordering::Acquire) {
                break;
            }
            passing.retain(|thread: &JoinHandle<()>| !thread.is_finished());
            let shared = Arc::clone(shared);
            passing.push(std::thread::spawn(move || pass(&stream, &shared)));
        }
        for thread in passing {
            let _ = thread.join();
        }
    }

    /// Copies all bytes. In its place `io::copy` would call splice(2) on Linux, which holds the lock of a pipe while it
    /// waits for a socket: then the program can't read what is in its pipe already.
    fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => to.write_all(piece.get(..read).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes on what is said on a connection, and what a program answers, until both have ended.
    fn pass(stream: &UnixStream, shared: &Shared) {
        let (ended, asking) = match begin(stream, shared) {
            Ok((child, asking)) => (answer(child, stream, &shared.program), Some(asking)),
            Err(error) => (Err(error), None),
        };
        let failure = ended.err().map(|error| error.to_string());
        *shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        // The client sees the end only now that the failure is known.
        let _ = stream.shutdown(Shutdown::Both);
        let _ = asking.map(JoinHandle::join);
    }

    /// Starts a program, and a thread that passes on what is asked.
    fn begin(stream: &UnixStream, shared: &Shared) -> io::Result<(Child, JoinHandle<()>)> {
        let program = &shared.program;
        let mut command = Command::new(program);
        command.args(&shared.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut asked = stream.try_clone()?;
        let mut child = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot run {program}: {error}"))
        })?;
        let mut input = child.stdin.take();
        let asking = std::thread::spawn(move || {
            if let Some(input) = &mut input {
                let _ = copy(&mut asked, input);
            }
        });
        Ok((child, asking))
    }

    /// Passes on what a program answers, until it has ended.
    fn answer(mut child: Child, stream: &UnixStream, program: &str) -> io::Result<()> {
        if let Some(output) = &mut child.stdout {
            let _ = copy(output, &mut &*stream);
        }
        let status = child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("{program} ended with {status}; it says why"))),
        }
    }
}

#[cfg(not(unix))]
mod absent {
    use annals::ErrorKind;

    use super::{ClientBuilder, Error, Result, Url};

    /// There is none on this system.
    #[derive(Debug)]
    pub(crate) enum Tunnel {}

    impl Tunnel {
        pub(crate) fn of(url: &Url, _wrong: impl Fn(&str) -> Error) -> Result<Option<Self>> {
            match url.scheme() {
                "ssh" => Err(Error::new(
                    ErrorKind::Unsupported,
                    "URLs of ssh need a Unix: forward a port with ssh -L, and use http://localhost",
                )),
                _ => Ok(None),
            }
        }

        pub(crate) fn url(&self) -> Result<Url> {
            match *self {}
        }

        pub(crate) fn lead(&self, _client: ClientBuilder) -> ClientBuilder {
            match *self {}
        }

        pub(crate) fn failure(&self) -> Option<String> {
            match *self {}
        }
    }
}
