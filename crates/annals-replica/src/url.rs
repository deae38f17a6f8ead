//! What a URL names: the connection, or the source of ranges, of a replica.

use std::sync::Arc;

use annals::{Error, ErrorKind, Result};

use crate::connection::{Connection, IntoConnection};
use crate::lazy::{IntoRanges, Ranges};
use crate::redact::redact;

impl IntoConnection for &str {
    fn into_connection(self) -> Result<Arc<dyn Connection>> {
        match scheme(self) {
            #[cfg(feature = "http")]
            "http" | "https" | "ssh" => Ok(Arc::new(crate::Http::with(self, environment())?)),
            #[cfg(feature = "log")]
            "nats" | "tls" => Ok(Arc::new(crate::SharedLog::new(self)?)),
            #[cfg(feature = "archive")]
            "file" | "s3" | "gs" | "az" => Ok(archive(self)?),
            _ => Err(unknown(self)),
        }
    }
}

impl IntoConnection for &String {
    fn into_connection(self) -> Result<Arc<dyn Connection>> {
        self.as_str().into_connection()
    }
}

impl IntoRanges for &str {
    fn into_ranges(self) -> Result<Arc<dyn Ranges>> {
        match scheme(self) {
            #[cfg(feature = "http")]
            "http" | "https" if self.ends_with(".annals") => {
                Ok(Arc::new(crate::lazy::Web::with(self, environment())?))
            }
            #[cfg(feature = "http")]
            "http" | "https" | "ssh" => Ok(Arc::new(crate::Http::with(self, environment())?)),
            #[cfg(feature = "archive")]
            "file" | "s3" | "gs" | "az" => Ok(archive(self)?),
            "nats" | "tls" => {
                let message = format!(
                    "{}: a shared log has no files to read; follow it with a replica",
                    redact(self)
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            _ => Err(unknown(self)),
        }
    }
}

impl IntoRanges for &String {
    fn into_ranges(self) -> Result<Arc<dyn Ranges>> {
        self.as_str().into_ranges()
    }
}

#[cfg(feature = "http")]
fn environment() -> crate::ServerAccess {
    crate::ServerAccess::of_environment()
}

#[cfg(feature = "archive")]
fn archive(url: &str) -> Result<Arc<crate::archive::Archive>> {
    use crate::archive::{Archive, Bucket};
    Ok(Arc::new(Archive::new(Bucket::open(url)?)))
}

fn scheme(url: &str) -> &str {
    url.split_once("://").map_or("", |(scheme, _)| scheme)
}

/// Returns the error that nothing is known to be at a URL.
fn unknown(url: &str) -> Error {
    let feature = match scheme(url) {
        "http" | "https" | "ssh" => "http",
        "nats" | "tls" => "log",
        "file" | "s3" | "gs" | "az" => "archive",
        _ => {
            // A name and password that were meant as those of a URL aren't shown either.
            let shown = if url.contains("://") {
                &redact(url)
            } else {
                url.rsplit('@').next().unwrap_or_default()
            };
            return Error::invalid(format!(
                "{shown:?} isn't the URL of a database: write http://HOST:PORT/v1/NAME, ssh://HOST/PATH, \
                 nats://HOST:PORT/STREAM, or that of an archive, as s3://BUCKET/PATH"
            ));
        }
    };
    let message = format!(
        "{}: this program was built without the feature `{feature}` of annals-replica",
        redact(url)
    );
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_url_is_shown_with_a_password() {
        for (url, shown) in [
            ("http://ann:secret@host:8080/v1/orders", "http://host:8080/v1/orders"),
            ("https://secret@host/v1/orders?a=b@c", "https://host/v1/orders?a=b@c"),
            ("s3://key:secret@backups/people", "s3://backups/people"),
            ("nats://ann:secret@a:1,b:2,secret@c:3/orders", "nats://a:1,b:2,c:3/orders"),
            ("ssh://ann:secret@host/a.annals", "ssh://ann@host/a.annals"),
            ("ssh://ann@host/a.annals", "ssh://ann@host/a.annals"),
            ("http://ann:sec/secret@host/v1/orders", "http://host/v1/orders"),
            ("http://ann:sec@secret@host/v1/orders", "http://host/v1/orders"),
            ("http://ann:sec?secret@host/v1/orders", "http://host/v1/orders"),
            ("http://[::1]:8080/v1/a@b", "http://[::1]:8080/v1/a@b"),
            ("s3://backups/a@b", "s3://backups/a@b"),
            ("file:///backups/a@b", "file:///backups/a@b"),
            (
                "error for \"http://a:secret@h/x\" and http://b:secret@i/: it's so",
                "error for \"http://h/x\" and http://i/: it's so",
            ),
            ("no URL: ann@host", "no URL: ann@host"),
        ] {
            assert_eq!(redact(url), shown);
        }
        // Wherever a URL is refused, and whatever is wrong with it.
        let login = "ann:secret@";
        for url in [
            "http://", "https://", "ssh://", "nats://", "s3://", "gs://", "az://", "ftp://",
            "http:/", "",
        ] {
            for rest in ["host/v1/orders", "host", "host/orders.annals", "host:x/v1/orders", ""] {
                let url = format!("{url}{login}{rest}");
                for refused in
                    [url.as_str().into_connection().err(), url.as_str().into_ranges().err()]
                {
                    let said =
                        refused.map_or_else(String::new, |error| format!("{error} {error:?}"));
                    assert!(!said.contains("secret"), "{url}: {said}");
                }
            }
        }
    }

    #[test]
    fn other_urls_are_refused_with_those_that_are_known() {
        for url in ["orders", "ftp://host/orders", ""] {
            let refused = url.into_connection().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{url}");
            assert!(refused.to_string().contains("http://HOST:PORT/v1/NAME"), "{url}: {refused}");
            assert_eq!(url.into_ranges().unwrap_err().kind(), ErrorKind::Invalid, "{url}");
        }
        let refused = "nats://host/orders".into_ranges().unwrap_err();
        assert!(refused.to_string().contains("follow it with a replica"), "{refused}");
    }
}
