//! Where a database is that isn't a file here, and who asks for it.

use std::sync::Arc;

use annals::Result;
use annals_replica::archive::{Archive, Bucket};
use annals_replica::lazy::Web;
use annals_replica::{Connection, Http, Ranges};
use clap::Args;

/// How to reach a database on a server.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// The token for a server, where the database is a URL; ANNALS_TOKEN is another way to say it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// A place with a database.
pub(crate) enum Place {
    /// A server of Annals.
    Server(Arc<Http>),
    /// Files on any web server.
    Web(Arc<Web>),
    /// An archive in an object store or a folder.
    Archive(Arc<Archive>),
}

impl Place {
    /// Returns it as a source of ranges.
    pub(crate) fn ranges(self) -> Arc<dyn Ranges> {
        match self {
            Self::Server(server) => server,
            Self::Web(web) => web,
            Self::Archive(archive) => archive,
        }
    }
}

impl Access {
    fn token(&self) -> Option<String> {
        let from_environment =
            || std::env::var("ANNALS_TOKEN").ok().filter(|token| !token.is_empty());
        self.token.clone().or_else(from_environment)
    }

    /// Prepares a connection to a URL.
    pub(crate) fn connect(&self, url: &str) -> Result<Arc<dyn Connection>> {
        if super::archive(url.as_ref()).is_some() {
            return Ok(Arc::new(Archive::new(Bucket::open(url)?)));
        }
        Ok(Arc::new(self.http(url)?))
    }

    /// Prepares requests to a URL.
    pub(crate) fn http(&self, url: &str) -> Result<Http> {
        Http::new(url, self.token())
    }

    /// Returns the place that a URL names: a file on a web server, if it ends with `.annals`.
    pub(crate) fn place(&self, url: &str) -> Result<Place> {
        if super::archive(url.as_ref()).is_some() {
            return Ok(Place::Archive(Arc::new(Archive::new(Bucket::open(url)?))));
        }
        match url.ends_with(".annals") && !url.starts_with("ssh://") {
            true => Ok(Place::Web(Arc::new(Web::new(url, self.token())?))),
            false => Ok(Place::Server(Arc::new(Http::new(url, self.token())?))),
        }
    }
}
