//! Calls of procedures, which run on the server.

use std::time::Duration;

use annals::storage::{Clock as _, SystemClock};
use annals::{Error, ErrorKind, Result, Txid};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::http::MOST_OF_JSON;
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
        let key: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let Patience { deadline, mut pause } = Patience::default();
        let end = SystemClock.elapsed() + deadline;
        let mut may_have_run = false;
        loop {
            let error = match self.post_json("/transactions", &key, &body) {
                Ok(response) if response.status() == StatusCode::OK => {
                    match self.read(response, MOST_OF_JSON) {
                        Ok(text) => {
                            let read = serde_json::from_slice(&text);
                            return read.map_err(|error| {
                                Error::invalid(format!(
                                    "{procedure} answered with another type: {error}"
                                ))
                            });
                        }
                        Err(error) => {
                            may_have_run = true;
                            error
                        }
                    }
                }
                Ok(response) => match response.status() {
                    StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT => {
                        may_have_run = true;
                        self.refused(response)
                    }
                    _ => return Err(self.refused(response)),
                },
                Err(error) => {
                    may_have_run |= !error.is_connect();
                    self.unreachable(&error)
                }
            };
            if SystemClock.elapsed() + pause >= end {
                return Err(match may_have_run {
                    true => Error::new(
                        ErrorKind::UnknownOutcome,
                        format!("{procedure} may have run (comment:request {key}): {error}"),
                    ),
                    false => error,
                });
            }
            SystemClock.pause(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
