//! Requests to JetStream, as its clients send them.

use std::time::Duration;

use annals::{Error, ErrorKind, Result, Timestamp};
use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Message as Nats};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::log::Message;

/// How long an answer is waited for: an election makes a server swallow requests.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// The error code of an append that expects another end of the stream.
const WRONG_LAST_SEQUENCE: u32 = 10071;
/// The error code of a stream that isn't there.
const NO_STREAM: u32 = 10059;
/// The error code of a cluster that hasn't as many servers, or doesn't know them yet.
const NO_PEERS: u32 = 10005;
/// The error code of a message that isn't there.
const NO_MESSAGE: u32 = 10037;

/// What a server says of an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Problem {
    pub(super) code: u16,
    pub(super) err_code: u32,
    pub(super) description: String,
}

#[derive(Deserialize)]
struct Answer<T> {
    error: Option<Problem>,
    #[serde(flatten)]
    rest: Option<T>,
}

/// The failure of a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody has got it, as a server says.
    NotSent(String),
    /// Nobody answers.
    Silence(String),
    /// The server refuses it.
    Refused(Problem),
}

impl Failure {
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.err_code == WRONG_LAST_SEQUENCE)
    }

    pub(super) fn is_no_stream(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.err_code == NO_STREAM)
    }

    /// Returns it as an error of a log.
    pub(super) fn into_error(self, name: &str) -> Error {
        match self {
            Self::NotSent(what) | Self::Silence(what) => {
                Error::new(ErrorKind::Unreachable, format!("{name}: {what}"))
            }
            Self::Refused(Problem { err_code: NO_STREAM, .. }) => {
                let message =
                    format!("{name}: there is no such stream: `annals log create` makes it");
                Error::new(ErrorKind::NotFound, message)
            }
            Self::Refused(Problem { code, err_code, description }) => {
                // Servers that lose or elect their leader answer so.
                let kind = match code {
                    _ if err_code == NO_PEERS => ErrorKind::Unreachable,
                    500..=599 => ErrorKind::Unreachable,
                    403 => ErrorKind::Forbidden,
                    401 => ErrorKind::Unauthenticated,
                    _ => ErrorKind::Invalid,
                };
                Error::new(kind, format!("{name}: {description} (JetStream error {err_code})"))
            }
        }
    }
}

/// Sends a request and returns the answer.
async fn request(
    client: &Client,
    subject: String,
    headers: Option<HeaderMap>,
    payload: Bytes,
) -> std::result::Result<Nats, Failure> {
    let request = async_nats::Request::new().payload(payload).timeout(Some(PATIENCE));
    let request = match headers {
        Some(headers) => request.headers(headers),
        None => request,
    };
    client.send_request(subject, request).await.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => Failure::NotSent(
            "no server answers for JetStream: it has no leader now, or isn't enabled".to_owned(),
        ),
        RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
            Failure::NotSent(error.to_string())
        }
        _ => Failure::Silence(format!("no answer within {PATIENCE:?}: {error}")),
    })
}

/// Sends a request of the API and reads the answer.
pub(super) async fn call<T: DeserializeOwned>(
    client: &Client,
    subject: String,
    body: &serde_json::Value,
) -> std::result::Result<T, Failure> {
    let payload = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    read(&request(client, subject, None, payload).await?.payload)
}

fn read<T: DeserializeOwned>(payload: &[u8]) -> std::result::Result<T, Failure> {
    let strange = |what: String| Failure::Silence(format!("an answer that can't be read: {what}"));
    let problem: Answer<serde_json::Value> =
        serde_json::from_slice(payload).map_err(|error| strange(error.to_string()))?;
    if let Some(problem) = problem.error {
        return Err(Failure::Refused(problem));
    }
    let rest = problem.rest.unwrap_or_default();
    serde_json::from_value(rest).map_err(|error| strange(error.to_string()))
}

#[derive(Deserialize)]
struct Ack {
    seq: u64,
}

/// Appends a message, if the stream ends with the sequence `after`; returns its sequence.
pub(super) async fn append(
    client: &Client,
    subject: &str,
    after: u64,
    message: Bytes,
) -> std::result::Result<u64, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Sequence", after.to_string().as_str());
    let answer = request(client, subject.to_owned(), Some(headers), message).await?;
    read::<Ack>(&answer.payload).map(|ack| ack.seq)
}

#[derive(Deserialize)]
struct Stored {
    message: StoredMessage,
}

#[derive(Deserialize)]
struct StoredMessage {
    seq: u64,
    #[serde(default)]
    data: String,
    time: String,
}

/// Reads a message from the leader.
pub(super) async fn get_from_leader(
    client: &Client,
    stream: &str,
    sequence: u64,
) -> std::result::Result<Option<Message>, Failure> {
    let subject = format!("$JS.API.STREAM.MSG.GET.{stream}");
    match call::<Stored>(client, subject, &json!({ "seq": sequence })).await {
        Ok(Stored { message }) => {
            let bytes = BASE64_STANDARD.decode(&message.data).unwrap_or_default().into();
            Ok(Some(Message { sequence: message.seq, time: micros(&message.time), bytes }))
        }
        Err(Failure::Refused(problem)) if problem.err_code == NO_MESSAGE || problem.code == 404 => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Removes all messages before a sequence.
pub(super) async fn purge(
    client: &Client,
    stream: &str,
    before: u64,
) -> std::result::Result<(), Failure> {
    let subject = format!("$JS.API.STREAM.PURGE.{stream}");
    call::<serde_json::Value>(client, subject, &json!({ "seq": before })).await.map(drop)
}

/// Reads a message from the replica that answers first.
pub(super) async fn get(
    client: &Client,
    stream: &str,
    sequence: u64,
) -> std::result::Result<Option<Message>, Failure> {
    let subject = format!("$JS.API.DIRECT.GET.{stream}");
    let body = json!({ "seq": sequence }).to_string();
    let answer = request(client, subject, None, body.into()).await?;
    Ok(message(answer).filter(|message| message.sequence == sequence))
}

/// Reads messages in a row from the replica that answers first.
pub(super) async fn get_many(
    client: &Client,
    place: Place<'_>,
    count: usize,
    most: usize,
) -> Result<Vec<Message>> {
    let Place { name, stream, from } = place;
    let lost = |what: String| Error::new(ErrorKind::Unreachable, format!("{name}: {what}"));
    let inbox = client.new_inbox();
    let mut answers =
        client.subscribe(inbox.clone()).await.map_err(|error| lost(error.to_string()))?;
    let subject = format!("$JS.API.DIRECT.GET.{stream}");
    let body = json!({ "seq": from, "batch": count, "max_bytes": most, "next_by_subj": ">" });
    let sent = client.publish_with_reply(subject, inbox, body.to_string().into()).await;
    sent.map_err(|error| lost(error.to_string()))?;
    let mut messages = Vec::new();
    loop {
        let answer = tokio::time::timeout(PATIENCE, answers.next()).await;
        let Ok(Some(answer)) = answer else {
            // What came is in order; the rest is asked for again.
            return match messages.is_empty() {
                true => Err(lost(format!("no replica answers within {PATIENCE:?}"))),
                false => Ok(messages),
            };
        };
        if answer.status == Some(async_nats::StatusCode::NO_RESPONDERS) {
            return Err(lost("no replica answers: is direct access allowed?".to_owned()));
        }
        match message(answer) {
            Some(message) => messages.push(message),
            None => return Ok(messages),
        }
    }
}

/// A place in a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'p> {
    pub(super) name: &'p str,
    pub(super) stream: &'p str,
    pub(super) from: u64,
}

/// Reads the answer to a direct request; `None` if it says that there is nothing.
fn message(answer: Nats) -> Option<Message> {
    let (sequence, time) = stamp(answer.headers.as_ref()?)?;
    (answer.status.is_none()).then_some(Message { sequence, time, bytes: answer.payload })
}

/// Returns the sequence and the time that a server says of a message. Its headers follow those that the message has itself,
/// which may have the same names.
pub(super) fn stamp(headers: &HeaderMap) -> Option<(u64, i64)> {
    let sequence = headers.get_last("Nats-Sequence")?.as_str().parse().ok()?;
    Some((sequence, micros(headers.get_last("Nats-Time-Stamp")?.as_str())))
}

/// Reads a time stamp.
fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().map_or(0, |time| time.0)
}
