//! The servers and the nodes: their processes, disks and clocks.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals_replica::shared_log::testing::program;

use super::network::{self, Machine, command};
use super::{COUNT, millis, pause};
use crate::program::{run, succeed};

/// The stream, and the database.
const STREAM: &str = "ledger";
/// Where nodes listen.
const PORT: u16 = 8080;
/// The size of a disk; memory is taken only for what is written.
const DISK: &str = "3g";
/// How long an election may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A library that lets a program see another time, of the Debian package `libfaketime`.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// A process on a machine, with a disk of its own.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) disk: PathBuf,
    child: Option<Child>,
    is_node: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) folder: PathBuf,
    pub(super) servers: Vec<Process>,
    pub(super) nodes: Vec<Process>,
    /// What processes said that ended by themselves.
    pub(super) ended: Vec<String>,
}

impl Process {
    fn new(folder: &Path, machine: Machine, is_node: bool) -> Self {
        let disk = folder.join(&machine.name);
        std::fs::create_dir(&disk).unwrap();
        command(&format!("mount -t tmpfs -o size={DISK} none {}", disk.display()));
        Self { machine, disk, child: None, is_node }
    }

    fn log(&self) -> PathBuf {
        self.disk.with_extension("log")
    }

    /// Starts it.
    pub(super) fn start(&mut self, options: &[String]) {
        let mut command = match self.is_node {
            // A copy: it may be built again meanwhile.
            true => self.machine.run(&self.disk.with_file_name("annals")),
            false => self.machine.run(&program().unwrap()),
        };
        if self.is_node && Path::new(FAKETIME).exists() {
            command
                .env("LD_PRELOAD", FAKETIME)
                .env("FAKETIME_TIMESTAMP_FILE", self.clock())
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let log = File::options().create(true).append(true).open(self.log()).unwrap();
        command.args(options).current_dir(&self.disk).stdin(Stdio::null());
        self.child = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, name: &str) {
        if let Some(child) = &self.child {
            command(&format!("kill -{name} {}", child.id()));
        }
    }

    /// Ends it as an operator does.
    pub(super) fn end(&mut self) {
        self.signal("TERM");
        if let Some(mut child) = self.child.take() {
            child.wait().unwrap();
        }
    }

    /// Returns what it said last, if it has ended by itself.
    fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().unwrap()?;
        self.child = None;
        let said = std::fs::read_to_string(self.log()).unwrap_or_default();
        let last = said.lines().next_back().unwrap_or_default();
        Some(format!("{} ended with {status}: {last}", self.machine.name))
    }

    /// Leaves no room on its disk.
    pub(super) fn fill(&self) {
        let disk = self.disk.display().to_string();
        let used = Command::new("df").args(["--block-size=1K", "--output=used", &disk]).output();
        let used = String::from_utf8(used.unwrap().stdout).unwrap();
        let used: u64 = used.split_whitespace().next_back().unwrap().parse().unwrap();
        command(&format!("mount -o remount,size={}k {disk}", used + 64));
    }

    /// Makes room again.
    pub(super) fn empty(&self) {
        command(&format!("mount -o remount,size={DISK} {}", self.disk.display()));
    }

    fn clock(&self) -> PathBuf {
        self.disk.with_extension("clock")
    }

    /// Sets its clock ahead, or back.
    pub(super) fn set_clock(&self, seconds: i64) {
        // At once, so that nobody reads half of it.
        let new = self.disk.with_extension("clock-new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(new, self.clock()).unwrap();
    }

    /// Flips bits in the newest block of its messages; it doesn't run meanwhile.
    pub(super) fn flip(&self) {
        let folder = self.disk.join(format!("data/jetstream/$G/streams/{STREAM}/msgs"));
        let blocks = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
        let blocks = blocks.filter(|it| it.extension().is_some_and(|it| it == "blk"));
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<u64>().ok();
        let Some(path) = blocks.max_by_key(number) else { return };
        let mut bytes = std::fs::read(&path).unwrap();
        for _ in 0..4 {
            let at = super::below(bytes.len().max(1) as u64);
            if let Some(byte) = bytes.get_mut(usize::try_from(at).unwrap()) {
                *byte ^= 1 << super::below(8);
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }

    /// Answers a request for a path, by HTTP at a port.
    pub(super) fn ask(&self, port: u16, path: &str) -> Option<serde_json::Value> {
        let address = format!("{}:{port}", self.machine.address).parse().ok()?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Returns the end of a node's history.
    pub(super) fn history(&self) -> Option<(u64, String)> {
        let facts = self.ask(PORT, &format!("/v1/{STREAM}"))?;
        Some((facts.get("txid")?.as_u64()?, facts.get("chain")?.as_str()?.to_owned()))
    }
}

impl World {
    /// Starts everything, with a table.
    pub(super) fn start(folder: &Path) -> Self {
        network::begin();
        std::fs::copy(env!("CARGO_BIN_EXE_annals"), folder.join("annals")).unwrap();
        let machine = |kind: &str, first: usize, number: usize| {
            Machine::connect(&format!("{kind}{number}"), first + number)
        };
        let servers =
            (0..COUNT).map(|number| Process::new(folder, machine("s", 10, number), false));
        let nodes = (0..COUNT).map(|number| Process::new(folder, machine("n", 20, number), true));
        let (servers, nodes) = (servers.collect(), nodes.collect());
        let mut world = Self { folder: folder.to_owned(), servers, nodes, ended: Vec::new() };
        for number in 0..COUNT {
            world.configure(number);
            world.start_server(number);
        }
        let options = world.options();
        let log = world.url();
        let create = ["log", "create", &log, "--replicas", "3"];
        let create = create.into_iter().chain(options.iter().map(String::as_str));
        succeed(folder, &create.collect::<Vec<_>>(), "");
        world.read_log("first.annals", "create_table op\nadd_field op k string\n");
        for number in 0..COUNT {
            world.nodes[number].machine.open(PORT);
            world.nodes[number].set_clock(0);
            world.start_node(number);
        }
        world
    }

    fn configure(&self, number: usize) {
        let address = |server: &Process| server.machine.address.clone();
        let routes: Vec<_> =
            self.servers.iter().map(|it| format!("nats://{}:6222", address(it))).collect();
        let (server, disk) = (&self.servers[number], &self.servers[number].disk);
        let at = address(server);
        let config = format!(
            "server_name: s{number}\nlisten: {at}:4222\nhttp: {at}:8222\n\
             jetstream {{ store_dir: {:?}, max_mem: 64M, max_file: 2G, sync_interval: \"always\" }}\n\
             cluster {{ name: test, listen: {at}:6222, routes: {routes:?} }}\n",
            disk.join("data").display().to_string(),
        );
        std::fs::write(disk.join("nats.conf"), config).unwrap();
    }

    /// Returns the URL of the stream.
    fn url(&self) -> String {
        let hosts: Vec<_> =
            self.servers.iter().map(|it| format!("{}:4222", it.machine.address)).collect();
        format!("nats://{}/{STREAM}", hosts.join(","))
    }

    /// Returns the options with which the settings of the servers are checked.
    fn options(&self) -> Vec<String> {
        let monitor = |server: &Process| format!("http://{}:8222", server.machine.address);
        self.servers.iter().flat_map(|it| ["--monitor".to_owned(), monitor(it)]).collect()
    }

    /// Runs a script at a node that works for this long only.
    pub(super) fn read_log(&self, file: &str, script: &str) {
        let (log, options) = (self.url(), self.options());
        let shell = ["shell", file, "--log", &log];
        let shell = shell.into_iter().chain(options.iter().map(String::as_str));
        let output = run(&self.folder, &shell.collect::<Vec<_>>(), script.as_bytes());
        let said = String::from_utf8_lossy(&output.stderr);
        // What a node sent while its clock was ahead doesn't count, and each new node says so.
        let others: Vec<_> = said.lines().filter(|it| !it.contains("of the log is void")).collect();
        assert!(output.status.success() && others.is_empty(), "{file}: {others:?}");
    }

    pub(super) fn start_server(&mut self, number: usize) {
        let config = self.servers[number].disk.join("nats.conf").display().to_string();
        self.servers[number].start(&["-c".to_owned(), config]);
    }

    pub(super) fn start_node(&mut self, number: usize) {
        let listen = format!("127.0.0.1:{PORT}");
        let file = format!("{STREAM}.annals");
        let url = self.url();
        let fixed = ["serve", &file, "--log", &url, "--listen", &listen, "--no-token"];
        let options = fixed.map(str::to_owned).into_iter().chain(self.options());
        self.nodes[number].start(&options.collect::<Vec<_>>());
    }

    /// True if the clocks of nodes can be set.
    pub(super) fn has_clocks(&self) -> bool {
        Path::new(FAKETIME).exists()
    }

    /// Returns the addresses of the nodes.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|it| format!("{}:{PORT}", it.machine.address)).collect()
    }

    /// Starts what has ended by itself, and notes that.
    pub(super) fn revive(&mut self) {
        for number in 0..COUNT {
            if let Some(said) = self.servers[number].ended() {
                self.ended.push(said);
                self.start_server(number);
            }
            if let Some(said) = self.nodes[number].ended() {
                self.ended.push(said);
                self.start_node(number);
            }
        }
    }

    /// Loses nothing between machines any more.
    pub(super) fn heal(&self) {
        self.servers.iter().chain(&self.nodes).for_each(|it| it.machine.heal());
    }

    /// Returns the number of the server that leads the stream.
    pub(super) fn leader(&self) -> usize {
        let until = SystemClock.elapsed() + PATIENCE;
        loop {
            let leader = self.servers.iter().find_map(|server| {
                let answer = server.ask(8222, "/jsz?streams=true&accounts=true")?;
                let streams = answer.pointer("/account_details/0/stream_detail")?.as_array()?;
                let of = streams.iter().find(|it| it["name"] == STREAM)?;
                of.pointer("/cluster/leader")?.as_str()?.strip_prefix('s')?.parse().ok()
            });
            if let Some(leader) = leader {
                return leader;
            }
            assert!(SystemClock.elapsed() < until, "no server leads for {PATIENCE:?}");
            pause(millis(100));
        }
    }
}
