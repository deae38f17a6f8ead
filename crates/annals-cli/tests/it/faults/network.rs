//! A network of machines, each a namespace of its own, joined by a bridge.

use std::process::Command;

/// Runs a command, which must succeed.
pub(super) fn command(line: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) address: String,
}

/// Makes the bridge, and this process's place at it: all machines can be reached from here, whatever is cut between them.
pub(super) fn begin() {
    command("mount -t tmpfs none /run");
    command("ip link set lo up");
    command("ip link add hub type bridge");
    command("ip addr add 10.0.0.1/24 dev hub");
    command("ip link set hub up");
}

impl Machine {
    /// Connects a machine with a name and the last number of its address.
    pub(super) fn connect(name: &str, number: usize) -> Self {
        let address = format!("10.0.0.{number}");
        command(&format!("ip netns add {name}"));
        command(&format!("ip link add v{name} type veth peer name eth0 netns {name}"));
        command(&format!("ip link set v{name} master hub up"));
        command(&format!("ip -n {name} addr add {address}/24 dev eth0"));
        command(&format!("ip -n {name} link set eth0 up"));
        command(&format!("ip -n {name} link set lo up"));
        Self { name: name.to_owned(), address }
    }

    /// Lets a program that listens on loopback only be reached from outside.
    pub(super) fn open(&self, port: u16) {
        let name = &self.name;
        command(&format!("ip netns exec {name} sysctl -qw net.ipv4.conf.all.route_localnet=1"));
        command(&format!(
            "ip netns exec {name} iptables -w -t nat -A PREROUTING -p tcp --dport {port} -j DNAT --to 127.0.0.1:{port}"
        ));
    }

    /// Returns a command that runs on the machine.
    pub(super) fn run(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Loses all that comes from another machine.
    pub(super) fn ignore(&self, from: &Self) {
        let (name, address) = (&self.name, &from.address);
        command(&format!("ip netns exec {name} iptables -w -A INPUT -s {address} -j DROP"));
    }

    /// Loses nothing any more.
    pub(super) fn heal(&self) {
        command(&format!("ip netns exec {} iptables -w -F INPUT", self.name));
    }
}

/// Cuts two machines off from each other.
pub(super) fn cut(one: &Machine, other: &Machine) {
    one.ignore(other);
    other.ignore(one);
}
