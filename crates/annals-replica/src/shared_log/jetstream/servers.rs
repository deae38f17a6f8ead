//! Connections to single servers of a stream: to compare what they have.

use std::sync::PoisonError;

use annals::Result;
use async_nats::Client;

use super::super::log::Message;
use super::{Shared, api};

impl Shared {
    /// Reads a message from a replica that isn't the leader.
    pub(super) async fn second(&self, sequence: u64) -> Result<Option<Message>> {
        let info = self.info().await?;
        let leader = info.cluster.map(|cluster| cluster.leader).unwrap_or_default();
        let clients = self.each_server().await?;
        let mut answered = false;
        for (name, client) in clients {
            if name == leader {
                continue;
            }
            if let Ok(message) = api::get(&client, &self.address.stream, sequence).await {
                if message.is_some() {
                    return Ok(message);
                }
                answered = true;
            }
        }
        match answered {
            true => Ok(None),
            false => Err(self
                .lost("no replica but the leader answers: a second one must, to judge a message")),
        }
    }

    /// Returns a connection to each server that can be reached, by its name.
    async fn each_server(&self) -> Result<Vec<(String, Client)>> {
        let client = self.client().await?;
        let mut urls: Vec<String> = self.address.servers.clone();
        let scheme = urls.first().and_then(|url| url.split_once("://")).map_or("nats", |it| it.0);
        let known = client.server_info().connect_urls;
        let known = known.iter().map(|host| format!("{scheme}://{host}"));
        urls.extend(known.collect::<Vec<_>>());
        let lock = || self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for url in urls {
            if lock().contains_key(&url) {
                continue;
            }
            let options = self.options().await?.ignore_discovered_servers();
            if let Ok(client) = options.connect(url.clone()).await {
                lock().insert(url, client);
            }
        }
        let name = |client: &Client| (client.server_info().server_name, client.clone());
        Ok(lock().values().map(name).collect())
    }
}
