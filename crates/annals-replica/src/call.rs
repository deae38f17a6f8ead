//! Calls of procedures, which run on the server.

use std::convert::Infallible;
use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Result, Txid};
use reqwest::StatusCode;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::http::{MOST_OF_JSON, Refusal};
use crate::outcome::{Answer, Attempt, Seen, Settled, Tries, settle};
use crate::{Http, Patience};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a procedure returned, whose transaction is on permanent storage.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Called<R> {
    /// The transaction; the last one before, if the procedure changed nothing.
    #[serde(deserialize_with = "txid")]
    pub txid: Txid,
    /// The result.
    pub answer: R,
    /// True if the call had arrived before, and only its answer was lost.
    #[serde(default, rename = "repeated")]
    pub is_repeated: bool,
}

fn txid<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Txid, D::Error> {
    u64::deserialize(from).map(Txid)
}

#[derive(Serialize)]
struct Request<'a, A> {
    procedure: &'a str,
    args: &'a A,
}

impl Http {
    /// Calls a procedure of the server, which runs once: if its answer is lost, it is asked for again with the same key, up
    /// to 30 s. (Idempotency keys as in Stripe's API; here they are in the journal, so that they outlive the server.)
    ///
    /// # Errors
    /// What the procedure failed with, as `Refused`; `Unique`, `Reference` and others of the transaction; `NotFound`: no such
    /// procedure; `Invalid`: arguments that it doesn't take; `Unreachable`: nothing arrived; `UnknownOutcome`: it may have
    /// run, and the server doesn't answer any more.
    pub fn call<R: DeserializeOwned>(
        &self,
        procedure: &str,
        args: &impl Serialize,
    ) -> Result<Called<R>> {
        let body = serde_json::to_string(&Request { procedure, args })
            .map_err(|error| Error::invalid(format!("the arguments aren't JSON: {error}")))?;
        let secret = SystemClock.secret();
        let key = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut calling = Calling { http: self, procedure, key, body };
        let mut tries = Tries::new(Patience::default(), LONGEST_PAUSE);
        let text = match settle(&mut calling, &mut tries)? {
            Settled::Done(text) => text,
            Settled::Conflict(never) => match never {},
            Settled::NotSent(error) => return Err(error),
        };
        serde_json::from_slice(&text).map_err(|error| {
            let what = "has run, and answered with another type";
            Error::invalid(format!("{procedure} {what} (comment:request {}): {error}", calling.key))
        })
    }
}

/// A call with its key: sent again, it is answered as the first time.
struct Calling<'c> {
    http: &'c Http,
    procedure: &'c str,
    key: String,
    body: String,
}

impl Attempt for Calling<'_> {
    /// The answer.
    type Done = Vec<u8>;
    type Other = Infallible;

    fn send(&mut self) -> Answer<Vec<u8>> {
        let response = match self.http.post_json("/transactions", &self.key, &self.body) {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                return Answer::NotSent(self.http.unreachable(&error));
            }
            Err(error) => return Answer::Unproven(self.http.unreachable(&error)),
        };
        if response.status() == StatusCode::OK {
            return match self.http.read(response, MOST_OF_JSON) {
                // Something between may answer so, too, but not with a transaction.
                Ok(text) if serde_json::from_slice::<Called<IgnoredAny>>(&text).is_ok() => {
                    Answer::Done(text)
                }
                Ok(_) => Answer::Unproven(self.http.strange("no transaction")),
                Err(error) => Answer::Unproven(error),
            };
        }
        match self.http.refusal(response) {
            Ok(Refusal { error, is_judgement: true }) => Answer::Refused(error),
            Ok(Refusal { error, .. }) | Err(error) => Answer::Unproven(error),
        }
    }

    /// Only the same call shows it.
    fn look(&mut self) -> Result<Seen<Vec<u8>, Infallible>> {
        Ok(Seen::Nothing)
    }

    fn unknown(&self, heard: &Error) -> Error {
        let Self { procedure, key, .. } = self;
        let message = format!("{procedure} may have run (comment:request {key}): {heard}");
        Error::new(ErrorKind::UnknownOutcome, message)
    }
}
