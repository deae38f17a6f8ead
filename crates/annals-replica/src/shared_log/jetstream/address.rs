//! Where a stream is, and how to get in.

use std::path::PathBuf;

use annals::{Error, Result};

use crate::redact::redact;

/// How to reach a stream, and how its settings are checked.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// A file with credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// The certificates of the authority that the servers' certificates are from, as PEM.
    pub authority: Option<PathBuf>,
    /// The monitor URLs of the servers: `http://HOST:8222`. By them it is seen whether each flushes what it acknowledges.
    pub monitors: Vec<String>,
    /// Believe that the servers and the stream lose nothing, whatever their settings are.
    pub trust_server: bool,
}

/// The URL of a stream: `nats://HOST:PORT,HOST:PORT/STREAM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The URLs of the servers.
    pub(super) servers: Vec<String>,
    pub(super) stream: String,
    /// The servers without user and password.
    shown: String,
}

impl Address {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "{:?} isn't the URL of a log: {what}; write nats://HOST:PORT/STREAM, or tls://..",
                redact(url)
            ))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no ://"))?;
        if !matches!(scheme, "nats" | "tls") {
            return Err(wrong("it doesn't begin with nats:// or tls://"));
        }
        let (hosts, stream) = rest
            .trim_end_matches('/')
            .rsplit_once('/')
            .ok_or_else(|| wrong("it names no stream"))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if stream.is_empty() || !stream.chars().all(is_plain) {
            return Err(wrong("the name of a stream has letters, digits, `-` and `_`"));
        }
        let hosts: Vec<&str> = hosts.split(',').collect();
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(wrong("a host is missing"));
        }
        let servers = hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        let shown = redact(url.trim_end_matches('/'));
        Ok(Self { servers, stream: stream.to_owned(), shown })
    }

    /// Returns it without user and password.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the user, with the password, that the first server's URL names.
    pub(super) fn login(&self) -> Option<&str> {
        let (_, rest) = self.servers.first()?.split_once("://")?;
        rest.rsplit_once('@').map(|(login, _)| login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers_and_a_stream() {
        let address = Address::parse("nats://ann:secret@a:1,b:2/orders").unwrap();
        assert_eq!(address.servers, ["nats://ann:secret@a:1", "nats://b:2"]);
        assert_eq!((address.stream.as_str(), address.login()), ("orders", Some("ann:secret")));
        assert_eq!(address.shown(), "nats://a:1,b:2/orders");
        for wrong in
            ["orders", "http://a/orders", "nats://a:1", "nats://a:1/", "nats:///x", "nats://a/b.c"]
        {
            let refused = Address::parse(wrong).unwrap_err().to_string();
            assert!(refused.contains("nats://HOST:PORT/STREAM"), "{wrong}: {refused}");
        }
    }
}
