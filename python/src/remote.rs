//! Databases on servers, which are read by ranges: what a question needs is fetched.

use std::sync::Arc;
use std::time::Duration;

use annals::{Options, Result};
use annals_replica::lazy::Web;
use annals_replica::{Fetching, Http, Lazy, Patience, Ranges};

/// How long a server that can't be reached is tried.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);

/// True if a path is a URL.
pub(crate) fn is_url(path: &str) -> bool {
    path.starts_with("http://") || path.starts_with("https://")
}

/// Opens a database by its URL: on a server of Annals, or a file on any web server, if the URL ends with `.annals`.
pub(crate) fn open(url: &str, token: Option<String>) -> Result<Lazy> {
    let from_environment = || std::env::var("ANNALS_TOKEN").ok().filter(|token| !token.is_empty());
    let token = token.or_else(from_environment);
    let ranges: Arc<dyn Ranges> = match url.ends_with(".annals") {
        true => Arc::new(Web::new(url, token)?),
        false => Arc::new(Http::new(url, token)?),
    };
    let patience = Patience { deadline: UNREACHABLE_AFTER, ..Patience::default() };
    Lazy::in_memory(ranges, &Options::new(), Fetching { patience, ..Fetching::default() })
}
