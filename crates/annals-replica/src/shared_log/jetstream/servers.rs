//! Connections to single servers of a stream: to compare what they have.

use std::sync::PoisonError;

use annals::Result;
use async_nats::Client;

use super::super::log::Message;
use super::{Shared, api};

impl Shared {
    /// Reads a message from each replica that answers.
    pub(super) async fn copies(&self, sequence: u64) -> Result<Vec<Option<Message>>> {
        let info = self.info().await?;
        let replicas = info.servers();
        let leader = info.cluster.map(|cluster| cluster.leader).unwrap_or_default();
        let (stream, client) = (&self.address.stream, self.client().await?);
        let mut copies = Vec::new();
        copies.extend(api::get_from_leader(&client, stream, sequence).await);
        for (name, client) in self.each_server().await? {
            // Through a server that hasn't got the stream another one would answer.
            if name != leader && replicas.contains(&name) {
                copies.extend(api::get(&client, stream, sequence).await);
            }
        }
        match copies.is_empty() {
            true => Err(self.lost("no replica answers")),
            false => Ok(copies),
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
