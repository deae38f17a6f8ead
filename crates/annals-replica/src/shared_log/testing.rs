//! Three servers of NATS in processes of their own, on loopback: for tests and measurements.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use annals_storage::{Clock as _, SystemClock};

use super::jetstream::Access;
use super::links::Link;

/// How long servers may take to begin, or to elect a leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// So often servers begin at other ports if one of theirs was taken.
const STARTS: usize = 5;

/// A server, and where it is.
#[derive(Debug)]
struct Server {
    child: Option<Child>,
    folder: PathBuf,
    monitor: u16,
    /// The way of clients to it.
    clients: Link,
    /// Its ways to the other servers.
    routes: [Link; 3],
}

/// Three servers, which end with this.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
}

/// Returns the path of the program.
///
/// # Errors
/// It isn't installed; the error says what brings it.
pub fn program() -> Result<PathBuf, &'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::home_dir().map(|home| home.join("go/bin"));
    let folders = std::env::split_paths(&path).chain(home);
    let mut programs = folders.map(|folder| folder.join("nats-server"));
    programs.find(|program| program.is_file()).ok_or(
        "nats-server is neither in PATH nor in ~/go/bin; go install github.com/nats-io/nats-server/v2@latest",
    )
}

/// Returns free ports of loopback.
fn ports<const N: usize>() -> [u16; N] {
    let listeners: [_; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

impl Server {
    /// Writes its settings; it is to listen at these ports, for clients and for other servers.
    fn configure(&self, number: usize, [client, route]: [u16; 2], sync: &str) {
        // With itself: so it knows how many there are.
        let routes = self.routes.iter().map(|link| format!("nats://127.0.0.1:{}", link.port()));
        let config = format!(
            "server_name: n{number}\nlisten: 127.0.0.1:{client}\nhttp: 127.0.0.1:{}\n\
             client_advertise: \"127.0.0.1:{}\"\n\
             jetstream {{ store_dir: {:?}, max_mem: 64M, max_file: 2G, sync_interval: {sync} }}\n\
             cluster {{ name: test, listen: 127.0.0.1:{route}, no_advertise: true, routes: {:?} }}\n",
            self.monitor,
            self.clients.port(),
            self.folder.display().to_string(),
            routes.collect::<Vec<_>>(),
        );
        std::fs::write(self.folder.join("nats.conf"), config).expect("a file");
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Cluster {
    /// Starts them in an empty folder, with a `sync_interval`.
    ///
    /// # Errors
    /// The program isn't installed; the error says what brings it.
    ///
    /// # Panics
    /// They don't start.
    pub fn start(folder: &Path, sync: &str) -> Result<Self, &'static str> {
        Self::start_with(folder, sync, Link::to)
    }

    /// Does the same for a measurement: nothing is between servers and clients, so they can't be cut off.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn start_direct(folder: &Path, sync: &str) -> Result<Self, &'static str> {
        Self::start_with(folder, sync, Link::direct)
    }

    fn start_with(folder: &Path, sync: &str, link: fn(u16) -> Link) -> Result<Self, &'static str> {
        let program = program()?;
        // A port that was free may be another's when a server wants it: then that server ends, and all begin elsewhere.
        for _ in 0..STARTS {
            let mut cluster = Self::configure(folder, sync, link);
            for number in 0..3 {
                cluster.begin(&program, number);
            }
            if cluster.has_meta_leader() {
                return Ok(cluster);
            }
        }
        panic!("servers ended by themselves: {:?}", Self::said(folder));
    }

    fn configure(folder: &Path, sync: &str, link: fn(u16) -> Link) -> Self {
        let (clients, routes, monitors) = (ports::<3>(), ports::<3>(), ports::<3>());
        let servers = (0..3).map(|number| {
            let at = folder.join(format!("n{number}"));
            std::fs::create_dir_all(&at).expect("a folder");
            let server = Server {
                child: None,
                folder: at,
                monitor: monitors[number],
                clients: link(clients[number]),
                routes: routes.map(link),
            };
            server.configure(number, [clients[number], routes[number]], sync);
            server
        });
        Self { servers: servers.collect() }
    }

    /// Returns what each server said last.
    fn said(folder: &Path) -> Vec<String> {
        let logs =
            (0..3).map(|number| std::fs::read_to_string(folder.join(format!("n{number}/log"))));
        logs.map(|log| log.unwrap_or_default().lines().next_back().unwrap_or_default().to_owned())
            .collect()
    }

    #[expect(clippy::disallowed_methods, reason = "what a server says is in a file of a test")]
    fn begin(&mut self, program: &Path, number: usize) {
        let server = &mut self.servers[number];
        let log =
            std::fs::File::options().create(true).append(true).open(server.folder.join("log"));
        let child = Command::new(program)
            .arg("-c")
            .arg(server.folder.join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(log.expect("a file"))
            .spawn();
        server.child = Some(child.expect("a server"));
    }

    /// Starts a server again.
    ///
    /// # Panics
    /// It doesn't start.
    pub fn restart(&mut self, number: usize) {
        self.begin(&program().expect("it was there"), number);
    }

    /// Ends a server at once.
    ///
    /// # Panics
    /// It can't be ended.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.servers[number].child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ended");
        }
    }

    /// Sends a signal to a server: STOP or CONT.
    ///
    /// # Panics
    /// It doesn't run.
    pub fn signal(&self, number: usize, name: &str) {
        let pid = self.servers[number].child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("a signal").success());
    }

    /// Cuts a server off from the other servers, or connects it again.
    pub fn cut_servers(&self, number: usize, is_cut: bool) {
        for (from, server) in self.servers.iter().enumerate() {
            for (to, link) in server.routes.iter().enumerate() {
                if from == number || to == number {
                    link.set_cut(is_cut);
                }
            }
        }
    }

    /// Cuts a server off from all clients, or connects it again.
    pub fn cut_clients(&self, number: usize, is_cut: bool) {
        self.servers[number].clients.set_cut(is_cut);
    }

    /// Returns the URL of a stream.
    #[must_use]
    pub fn url(&self, stream: &str) -> String {
        let hosts: Vec<_> = self
            .servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.clients.port()))
            .collect();
        format!("nats://{}/{stream}", hosts.join(","))
    }

    /// Returns the URL of a stream by one server.
    #[must_use]
    pub fn url_of(&self, number: usize, stream: &str) -> String {
        format!("nats://127.0.0.1:{}/{stream}", self.servers[number].clients.port())
    }

    /// Returns the access with which the settings of the servers are checked.
    #[must_use]
    pub fn access(&self) -> Access {
        let monitor = |server: &Server| format!("http://127.0.0.1:{}", server.monitor);
        Access { monitors: self.servers.iter().map(monitor).collect(), ..Access::default() }
    }

    /// Returns the file with a server's messages of a stream.
    #[must_use]
    pub fn blocks(&self, number: usize, stream: &str) -> PathBuf {
        self.servers[number].folder.join(format!("jetstream/$G/streams/{stream}/msgs/1.blk"))
    }

    fn ask(&self, number: usize, path: &str) -> Option<serde_json::Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.servers[number].monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Returns the number of the server that leads a stream.
    ///
    /// # Panics
    /// None is elected.
    #[must_use]
    pub fn leader(&self, stream: &str) -> usize {
        Self::wait(&self.folder(), "a leader of the stream", || {
            (0..3).filter(|number| self.servers[*number].child.is_some()).find_map(|number| {
                let answer = self.ask(number, "/jsz?streams=true&accounts=true")?;
                let details =
                    answer.pointer("/account_details/0/stream_detail")?.as_array()?.clone();
                let of = details.iter().find(|it| it["name"] == stream)?;
                of.pointer("/cluster/leader")?.as_str()?.strip_prefix('n')?.parse().ok()
            })
        })
    }

    /// Waits for a leader of all; false if a server has ended by itself.
    fn has_meta_leader(&mut self) -> bool {
        Self::wait(&self.folder(), "a leader of all", || {
            let ended = self.servers.iter_mut().any(Server::has_ended);
            if ended {
                return Some(false);
            }
            (0..3).find_map(|number| {
                let answer = self.ask(number, "/jsz")?;
                let leader = answer.pointer("/meta_cluster/leader")?.as_str()?;
                (!leader.is_empty()).then_some(true)
            })
        })
    }

    /// Returns the folder of all servers.
    fn folder(&self) -> PathBuf {
        self.servers[0].folder.parent().expect("a folder").to_owned()
    }

    fn wait<T>(folder: &Path, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let until = SystemClock.elapsed() + PATIENCE;
        loop {
            if let Some(found) = found() {
                return found;
            }
            let is_late = SystemClock.elapsed() >= until;
            assert!(!is_late, "{what} isn't there; the servers said: {:?}", Self::said(folder));
            SystemClock.pause(Duration::from_millis(50));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for number in 0..3 {
            self.kill(number);
        }
    }
}
