//! The folder `deploy` and the runbook: their configuration files and steps, with real servers at other addresses.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals_replica::shared_log::testing::{Cluster, program};

use crate::program::{run, succeed};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(project(path)).unwrap()
}

/// Servers that end with this.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns nine free ports: of clients, routes and monitors.
fn ports() -> [[u16; 3]; 3] {
    let listeners: [[_; 3]; 3] =
        std::array::from_fn(|_| std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap()));
    listeners.map(|three| three.map(|listener| listener.local_addr().unwrap().port()))
}

/// Starts the servers of the deployment, at free ports. `None` if one of them ended: a port was taken meanwhile.
fn deploy(
    program: &Path,
    dir: &Path,
    [clients, routes, monitors]: [[u16; 3]; 3],
) -> Option<Servers> {
    let certificates = dir.join("certificates.sh");
    std::fs::copy(project("deploy/certificates.sh"), &certificates).unwrap();
    let made = Command::new("sh").arg(&certificates).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let servers = (0..3).map(|number| {
        let (name, at) = (format!("n{}", number + 1), dir.join(format!("n{}", number + 1)));
        std::fs::create_dir_all(&at).unwrap();
        let place = |text: String| {
            let certs = dir.join("certs").display().to_string();
            let text = text.replace("/certs", &certs).replace("/data", &at.display().to_string());
            let text = text.replace("0.0.0.0:4222", &format!("127.0.0.1:{}", clients[number]));
            let text = text.replace("0.0.0.0:8222", &format!("127.0.0.1:{}", monitors[number]));
            let text = text.replace("0.0.0.0:6222", &format!("127.0.0.1:{}", routes[number]));
            (0..3).fold(text, |text, other| {
                let there = format!("127.0.0.1:{}", routes[other]);
                text.replace(&format!("n{}:6222", other + 1), &there)
            })
        };
        std::fs::write(at.join("server.conf"), place(read("deploy/nats/server.conf"))).unwrap();
        let own = at.join("own.conf");
        std::fs::write(&own, place(read(&format!("deploy/nats/{name}.conf")))).unwrap();
        let log = std::fs::File::create(at.join("log")).unwrap();
        let server = Command::new(program)
            .arg("-c")
            .arg(own)
            .env("NATS_PASSWORD", "secret")
            .env("NATS_KEEPER_PASSWORD", "kept")
            .stderr(log)
            .spawn();
        server.unwrap()
    });
    let mut servers = Servers(servers.collect());
    let until = SystemClock.elapsed() + Duration::from_secs(60);
    for port in clients.into_iter().chain(monitors) {
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if servers.0.iter_mut().any(|server| server.try_wait().unwrap().is_some()) {
                return None;
            }
            assert!(SystemClock.elapsed() < until, "no server listens at {port}");
            SystemClock.pause(Duration::from_millis(20));
        }
    }
    Some(servers)
}

#[test]
fn the_configuration_files_make_a_log() {
    let program = match program() {
        Ok(program) => program,
        Err(needs) => return annals_untested::untested(needs),
    };
    if Command::new("openssl").arg("version").output().is_err() {
        return annals_untested::untested("openssl isn't installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let deployed = (0..5).find_map(|_| {
        let ports = ports();
        deploy(&program, dir, ports).map(|servers| (ports, servers))
    });
    let (ports, servers) = deployed.expect("the servers end, again and again");
    let url = |user: &str, password: &str| {
        let host = |port| format!("{user}:{password}@127.0.0.1:{port}");
        format!("tls://{}/orders", ports[0].map(host).join(","))
    };
    let monitors = ports[2].map(|port| format!("http://127.0.0.1:{port}"));
    let monitors = monitors.iter().flat_map(|url| ["--monitor", url]);
    let options: Vec<&str> = monitors.chain(["--ca", "certs/ca.pem"]).collect();
    let create = |url: &str| {
        run(dir, &[&["log", "create", url, "--replicas", "3"], &options[..]].concat(), b"")
    };
    let refused = String::from_utf8_lossy(&create(&url("annals", "guessed")).stderr).into_owned();
    assert!(refused.contains("authorization"), "{refused}");
    let made = create(&url("annals", "secret"));
    let (said, failed) =
        (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(said.starts_with("created tls://127.0.0.1:"), "{said}{failed}");
    assert!(!said.contains("secret"), "{said}");
    let url = url("annals", "secret");
    let script = "create_table item\nadd_field item name string\ncommit\ninsert item bread\n";
    let shell = [&["shell", "ann.annals", "--log", &url], &options[..]].concat();
    let printed = succeed(dir, &shell, script);
    assert_eq!(printed, "committed txid=1 runs=1\ncommitted txid=2 runs=1\n");
    drop(servers);
}

#[test]
fn the_compose_file_uses_options_that_there_are() {
    let compose = read("deploy/compose.yaml");
    let help = |command: &[&str]| succeed(Path::new("."), &[command, &["--help"]].concat(), "");
    let all = [help(&["serve"]), help(&["log", "create"]), help(&["archive"])].concat();
    let without_others = compose.lines().filter(|line| !line.contains("posix"));
    let words = without_others.flat_map(str::split_whitespace);
    let options: Vec<_> = words
        .map(|it| it.trim_matches(['"', ',', ']']))
        .filter(|it| it.starts_with("--"))
        .collect();
    assert!(options.len() > 10, "{options:?}");
    for option in options {
        assert!(all.contains(option), "{option}");
    }
}

/// Returns the commands of the runbook, block by block.
fn steps() -> Vec<String> {
    let text = read("docs/guide/src/runbook.md");
    let blocks = text.split("```sh").skip(1);
    blocks
        .map(|it| it.split_once('\n').unwrap().1.split("```").next().unwrap().to_owned())
        .collect()
}

/// Runs commands of the runbook. The last of them serves: it ends once it listens.
fn follow(dir: &Path, commands: &str, variables: &[(&str, String)]) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_annals")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let commands = commands
        .replace("/data/", "")
        .replace("annals serve", "exec annals serve --listen 127.0.0.1:0");
    let mut shell = Command::new("sh");
    shell.args(["-ec", &commands]).current_dir(dir).env("PATH", path);
    shell.envs(variables.iter().map(|(name, value)| (*name, value)));
    let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(shell.stdout.take().unwrap()).lines() {
        said += &line.unwrap();
        said.push('\n');
        if said.contains("listening on ") {
            shell.kill().unwrap();
            shell.wait().unwrap();
            return said;
        }
    }
    assert!(shell.wait().unwrap().success(), "{commands}\n{said}");
    said
}

#[test]
fn the_steps_of_the_runbook_work() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, servers) = (folder.path(), folder.path().join("servers"));
    std::fs::create_dir(&servers).unwrap();
    let mut cluster = match Cluster::start(&servers, "\"always\"") {
        Ok(cluster) => cluster,
        Err(needs) => return annals_untested::untested(needs),
    };
    let monitors = cluster.access().monitors;
    let options: String = monitors.iter().map(|url| format!(" --monitor {url}")).collect();
    let archive = |name: &str| format!("file://{}", dir.join(name).display());
    let variables = [
        ("LOG", cluster.url("orders") + &options),
        ("ARCHIVE", archive("archive")),
        ("NEW", archive("new")),
    ];
    let begin = "annals log create $LOG --replicas 3; annals shell first.annals --log $LOG < script; \
                 annals archive first.annals $ARCHIVE";
    let script = "create_table item\nadd_field item name string\ncommit\ninsert item bread\n";
    std::fs::write(dir.join("script"), script).unwrap();
    follow(dir, begin, &variables);
    let [lost_node, lost_servers, trimmed, moved, tuesday] = &steps()[..] else {
        panic!("five blocks")
    };

    assert!(follow(dir, lost_node, &variables).contains("listening on "));
    // A server is lost with its disk, and comes back empty.
    cluster.kill(2);
    std::fs::remove_dir_all(servers.join("n2/jetstream")).unwrap();
    cluster.restart(2);
    let shell = "annals shell orders.annals --log $LOG < more";
    std::fs::write(dir.join("more"), "insert item butter\n").unwrap();
    assert_eq!(follow(dir, shell, &variables), "committed txid=3 runs=1\n");
    follow(dir, "annals archive orders.annals $ARCHIVE", &variables);
    assert!(follow(dir, trimmed, &variables).contains("removed "));
    let said = follow(
        dir,
        &lost_servers.replace("nats://n1:4222/orders2", &(cluster.url("orders2") + &options)),
        &variables,
    );
    assert!(said.contains("up to transaction 3"), "{said}");
    follow(dir, moved, &variables);
    let now = annals::Timestamp(SystemClock.now()).to_string();
    let said = follow(dir, &tuesday.replace("2026-11-17T12:00:00Z", &now), &variables);
    assert!(said.contains("bread") && said.contains("butter"), "{said}");
    // The new stream goes on where the old one was.
    let second = [("LOG", cluster.url("orders2") + &options)];
    assert_eq!(follow(dir, shell, &second), "committed txid=4 runs=1\n");
}
