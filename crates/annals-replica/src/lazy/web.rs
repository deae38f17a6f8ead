//! Files on any web server as a source of ranges: the journal, and beside it its image and its kept segments, under
//! the names that they have in a directory.

use std::collections::BTreeMap;
use std::ops::Range;

use annals::{Error, ErrorKind, Result};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, StatusCode, Url};

use super::ranges::{Contents, Object, Piece, Ranges};
use super::request;
use crate::client::{Client, SILENCE, ServerAccess, of_same_origin, whole};
use crate::frames::JournalFileKind;
use crate::http::refuse_login;
use crate::redact::redact;

/// A journal on a web server that knows ranges, by its URL: `https://example.org/data/library.annals`. It can only be
/// read.
#[derive(Debug)]
pub struct Web {
    url: Url,
    client: Client,
    token: Option<String>,
}

impl Web {
    /// Prepares a connection; nothing is sent yet. A token is sent as `Authorization: Bearer`.
    ///
    /// # Errors
    /// `Invalid`: the URL isn't one of a file.
    pub fn new(url: &str, token: Option<String>) -> Result<Self> {
        Self::with(url, ServerAccess { token, authority: None })
    }

    /// Does what [`new`](Self::new) does, with other settings than the usual ones.
    ///
    /// # Errors
    /// As [`new`](Self::new); `Invalid`: the file of the authority holds no certificates.
    pub fn with(url: &str, access: ServerAccess) -> Result<Self> {
        let ServerAccess { token, authority } = access.checked()?;
        let wrong = |what: String| {
            Error::invalid(format!(
                "{:?} isn't the URL of a journal on a web server: {what}",
                redact(url)
            ))
        };
        let parsed = Url::parse(url).map_err(|error| wrong(whole(&error)))?;
        refuse_login(&parsed).map_err(|what| wrong(what.to_owned()))?;
        let is_file =
            parsed.path_segments().and_then(Iterator::last).is_some_and(|it| !it.is_empty());
        if !matches!(parsed.scheme(), "http" | "https") || !is_file {
            return Err(wrong("write https://HOST/PATH/NAME.annals".to_owned()));
        }
        // Files are often elsewhere than their URLs say; what they hold is verified. But a token is for one server.
        let is_secret = token.is_some();
        let redirect = if is_secret { of_same_origin() } else { Policy::default() };
        let client = Client::trusting(authority.as_deref(), |client| client.redirect(redirect));
        let client = client.map_err(|error| wrong(whole(&error)))?;
        Ok(Self { url: parsed, client, token })
    }

    /// Returns the URL of another file beside the journal.
    fn beside(&self, kind: JournalFileKind) -> Url {
        let mut url = self.url.clone();
        // What may not stand in a path as it is stays escaped as it was in the name.
        url.set_path(&kind.name(self.url.path()));
        url
    }

    fn get(&self, url: Url) -> RequestBuilder {
        let request = self.client.request(Method::GET, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Looks for a file; its first byte shows whether the server knows ranges.
    fn find(&self, kind: JournalFileKind) -> Result<Option<Object>> {
        let url = self.beside(kind);
        let name = url.to_string();
        let asked = request::of_range(self.get(url), None, &(0..1));
        let response = self
            .client
            .send(asked, SILENCE)
            .map_err(|error| request::unreachable(&name, &error))?;
        let range = request::content_range(&response);
        match (response.status(), range) {
            (StatusCode::NOT_FOUND | StatusCode::GONE, _) => Ok(None),
            (StatusCode::PARTIAL_CONTENT, Some((Range { start: 0, end: 1 }, len))) => {
                Ok(Some(Object { path: name, len, tag: request::tag(&response) }))
            }
            (status, _) if status.is_success() => Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "{name}: this web server sends no ranges of files (Range, RFC 9110), so that all of the file would \
                     be fetched: serve it with one that does, or copy the file"
                ),
            )),
            _ => Err(request::refused(&name, &response)),
        }
    }
}

impl Ranges for Web {
    fn place(&self) -> String {
        self.url.to_string()
    }

    fn look(&self) -> Result<Contents> {
        let image = self.find(JournalFileKind::Image)?;
        let newest = self.find(JournalFileKind::Newest)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("{}: there is no such file", self.url))
        })?;
        Ok(Contents { newest, image, kept: BTreeMap::new(), end: None })
    }

    fn kept(&self, number: u64) -> Result<Option<Object>> {
        self.find(JournalFileKind::Kept(number))
    }

    fn read(&self, object: &Object, range: Range<u64>) -> Result<Piece> {
        let url = Url::parse(&object.path).map_err(|error| Error::invalid(whole(&error)))?;
        let asked = request::of_range(self.get(url), object.tag.as_deref(), &range);
        let response = self
            .client
            .send(asked, SILENCE)
            .map_err(|error| request::unreachable(&object.path, &error))?;
        let piece = request::piece(&object.path, response, object, &range)?;
        // Its ranges were right a moment ago.
        Ok(piece.unwrap_or(Piece::Replaced))
    }
}
