//! The settings of a stream and of its servers: those by which acknowledged transactions could be lost are refused.

use std::collections::BTreeSet;
use std::time::Duration;

use annals::{Error, ErrorKind, Result};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::super::log::Extent;
use crate::client::Client;
use crate::redact::redact;

/// The most bytes of what a monitor says.
const MOST: u64 = 1 << 20;

/// A leader that has heard of a follower so lately leads it: followers wait for longer before they elect another.
const HEARD: Duration = Duration::from_secs(2);

/// What a server says of a stream.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Info {
    pub(super) config: Config,
    pub(super) state: State,
    #[serde(default)]
    pub(super) cluster: Option<Cluster>,
}

/// The settings of a stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub(super) struct Config {
    pub(super) subjects: Vec<String>,
    retention: String,
    storage: String,
    discard: String,
    num_replicas: usize,
    max_msgs: i64,
    max_bytes: i64,
    max_age: i64,
    max_msgs_per_subject: i64,
    pub(super) max_msg_size: i64,
    deny_delete: bool,
    allow_direct: bool,
    republish: Option<Republish>,
}

/// Where a stream says what it has stored.
#[derive(Clone, Debug, Deserialize)]
struct Republish {
    dest: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            subjects: Vec::new(),
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "old".to_owned(),
            num_replicas: 1,
            max_msgs: -1,
            max_bytes: -1,
            max_age: 0,
            max_msgs_per_subject: -1,
            max_msg_size: -1,
            deny_delete: false,
            allow_direct: false,
            republish: None,
        }
    }
}

/// The messages of a stream.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct State {
    first_seq: u64,
    last_seq: u64,
}

impl State {
    pub(super) const fn extent(self) -> Extent {
        let first = if self.last_seq == 0 { 1 } else { self.first_seq };
        Extent { first, last: self.last_seq }
    }
}

/// The servers of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cluster {
    pub(super) leader: String,
    replicas: Vec<Peer>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Peer {
    name: String,
    offline: bool,
    /// When the leader heard of it, in nanoseconds before now.
    active: u64,
}

/// Returns the settings that a stream of a log needs.
pub(super) fn wanted(stream: &str, replicas: usize) -> serde_json::Value {
    json!({
        "name": stream,
        "subjects": [format!("annals.{stream}")],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "num_replicas": replicas,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        // The expected sequence recognises repetitions.
        "duplicate_window": 1_000_000_000_u64,
        "deny_delete": true,
        // Messages that the archive has are removed.
        "deny_purge": false,
        "allow_direct": true,
        // So writers learn the time stamp of a message with its answer, and readers that it is there.
        "republish": {
            "src": format!("annals.{stream}"),
            "dest": format!("annals-stored.{stream}"),
            "headers_only": true,
        },
    })
}

impl Info {
    /// Returns how many replicas the stream has.
    pub(super) const fn replicas(&self) -> usize {
        self.config.num_replicas
    }

    /// Returns the subject where the stream says what it has stored, if it does; else that of its messages.
    pub(super) fn news(&self) -> String {
        let stored = self.config.republish.as_ref().map(|it| &it.dest);
        let stored = stored.filter(|dest| !dest.contains(['*', '>', '{']));
        stored.or_else(|| self.config.subjects.first()).cloned().unwrap_or_default()
    }

    /// Returns the names of the servers that have it.
    pub(super) fn servers(&self) -> Vec<String> {
        let cluster = self.cluster.iter();
        let names = cluster.flat_map(|it| {
            it.replicas.iter().map(|peer| peer.name.clone()).chain([it.leader.clone()])
        });
        names.filter(|name| !name.is_empty()).collect()
    }

    /// True if a majority follows the leader that says this: it has heard of them since.
    pub(super) fn is_led(&self) -> bool {
        let Some(cluster) = &self.cluster else { return true };
        let hears = |peer: &&Peer| !peer.offline && u128::from(peer.active) < HEARD.as_nanos();
        let heard = 1 + cluster.replicas.iter().filter(hears).count();
        !cluster.leader.is_empty() && heard * 2 > 1 + cluster.replicas.len()
    }

    /// Returns the settings by which transactions could be lost, as `name: value`, with the ones needed.
    pub(super) fn faults(&self) -> Vec<String> {
        let config = &self.config;
        let mut faults = Vec::new();
        let mut need = |holds: bool, name: &str, value: &dyn std::fmt::Display, wanted: &str| {
            if !holds {
                faults.push(format!("{name} is {value}, and must be {wanted}"));
            }
        };
        need(config.num_replicas >= 3, "num_replicas", &config.num_replicas, "3 or more");
        need(config.storage == "file", "storage", &config.storage, "file");
        need(config.retention == "limits", "retention", &config.retention, "limits");
        need(config.discard == "new", "discard", &config.discard, "new");
        need(config.max_msgs < 1, "max_msgs", &config.max_msgs, "-1 (no limit)");
        need(config.max_bytes < 1, "max_bytes", &config.max_bytes, "-1 (no limit)");
        need(config.max_age == 0, "max_age", &config.max_age, "0 (no limit)");
        let per_subject = config.max_msgs_per_subject;
        need(per_subject < 1, "max_msgs_per_subject", &per_subject, "-1 (no limit)");
        need(config.deny_delete, "deny_delete", &false, "true");
        need(config.allow_direct, "allow_direct", &false, "true");
        need(config.subjects.len() == 1, "subjects", &config.subjects.len(), "one");
        faults
    }
}

/// What the monitor of a server says.
#[derive(Debug, Deserialize)]
struct Monitored {
    server_name: String,
    #[serde(default)]
    jetstream: JetStream,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JetStream {
    config: Option<ServerConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerConfig {
    sync_always: bool,
    sync_interval: i64,
}

/// Asks the monitors whether each server flushes before it acknowledges; returns what is wrong. These servers must be among
/// them; a minority may be down.
pub(super) fn unflushed(servers: &[String], monitors: &[String]) -> Result<Vec<String>> {
    let mut missing: BTreeSet<&str> = servers.iter().map(String::as_str).collect();
    let (mut faults, mut down) = (Vec::new(), Vec::new());
    for url in monitors {
        // A blocking client doesn't work on a thread of a runtime.
        let asked = std::thread::scope(|scope| scope.spawn(|| monitored(url)).join());
        let ended =
            |_| Error::new(ErrorKind::Unreachable, format!("{}: can't be asked", redact(url)));
        let Monitored { server_name, jetstream } = match asked.map_err(ended)? {
            Ok(monitored) => monitored,
            Err(error) => {
                down.push(error);
                continue;
            }
        };
        missing.remove(server_name.as_str());
        let config = jetstream.config.unwrap_or_default();
        if !config.sync_always {
            let seconds = config.sync_interval / 1_000_000_000;
            faults.push(format!(
                "sync_interval of server {server_name} is {seconds} s, and must be \"always\", with the quotes"
            ));
        }
    }
    if down.len() * 2 >= monitors.len() {
        if let Some(error) = down.into_iter().next() {
            return Err(error);
        }
        faults.push(
            "sync_interval of the servers isn't known: say the monitor URL of each (--monitor http://HOST:8222)".to_owned(),
        );
    } else if missing.len() > down.len() {
        let names = missing.into_iter().collect::<Vec<_>>().join(", ");
        faults.push(format!(
            "sync_interval of server {names} isn't known: say its monitor URL, too (--monitor http://HOST:8222)"
        ));
    }
    Ok(faults)
}

fn monitored(url: &str) -> Result<Monitored> {
    let lost = |what: String| Error::new(ErrorKind::Unreachable, redact(&format!("{url}: {what}")));
    let client = Client::new(|client| client).map_err(|error| lost(error.to_string()))?;
    let request = client.request(Method::GET, format!("{}/varz", url.trim_end_matches('/')));
    let answer = client.send(request, super::api::PATIENCE * 5);
    let text = answer.and_then(|answer| answer.read(MOST));
    let text = text.map_err(|error| lost(error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|_| lost("isn't the monitor of a NATS server: http://HOST:8222, say".to_owned()))
}

/// Returns the error that settings would lose transactions.
pub(super) fn refuse(name: &str, faults: &[String]) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{name}: acknowledged transactions could be lost: {}; change that, or insist with --trust-server",
            faults.join("; ")
        ),
    )
}
