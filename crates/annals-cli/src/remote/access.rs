//! Where a database is that isn't a file here, and who asks for it.

use std::path::PathBuf;
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
    #[command(flatten)]
    authority: Authority,
}

/// Who signs the certificates of servers.
#[derive(Debug, Args)]
pub(crate) struct Authority {
    /// The certificates of the authority of the servers, as PEM, besides those of the system; ANNALS_CA is another way to say it
    #[arg(long, value_name = "PEM")]
    ca: Option<PathBuf>,
}

impl Authority {
    /// Returns the path of the certificates.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.ca.clone().or_else(|| annals_replica::ServerAccess::of_environment().authority)
    }
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
    /// Returns who signs the certificates of servers.
    pub(crate) const fn authority(&self) -> &Authority {
        &self.authority
    }

    fn of_http(&self) -> annals_replica::ServerAccess {
        let token = annals_replica::ServerAccess::of_environment().token;
        let token = self.token.clone().or(token);
        annals_replica::ServerAccess { token, authority: self.authority.path() }
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
        Http::with(url, self.of_http())
    }

    /// Returns the place that a URL names: a file on a web server, if it ends with `.annals`.
    pub(crate) fn place(&self, url: &str) -> Result<Place> {
        if super::archive(url.as_ref()).is_some() {
            return Ok(Place::Archive(Arc::new(Archive::new(Bucket::open(url)?))));
        }
        match url.ends_with(".annals") && !url.starts_with("ssh://") {
            true => Ok(Place::Web(Arc::new(Web::with(url, self.of_http())?))),
            false => Ok(Place::Server(Arc::new(Http::with(url, self.of_http())?))),
        }
    }
}
