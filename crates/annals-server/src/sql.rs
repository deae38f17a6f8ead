//! SQL: queries over the present state, the past and the history. They only read, and end at limits.

use std::sync::Arc;

use annals::Txid;
use annals_sql::{
    Connection, Format, Limits, Parameters, Render, Source, SqlError, Value, ValueRef,
};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::means::{COPIES, Kind};
use crate::rights::Allowed;
use crate::shared::Shared;
use crate::state::now;
use crate::work::Work;
use crate::{body, object, openapi};

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(query))
}

/// A query, and the values of its parameters: a list for `?`, or an object for `:name`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Request<'r> {
    sql: String,
    #[serde(borrow)]
    #[schema(value_type = Option<serde_json::Value>)]
    params: Option<&'r RawValue>,
}

/// Answers a query. `Accept` chooses the form: `application/json`, `application/x-ndjson`, `text/csv` or
/// `application/vnd.apache.arrow.stream`.
#[utoipa::path(post, path = "/v1/{name}/sql", request_body = Request, responses(
    (status = 200, description = "the rows, each an object with the names of the columns; the header Annals-Txid says of \
        which state", body = Vec<openapi::Row>, content_type = "application/json"),
    (status = 400, description = "SQLite doesn't understand the query, or it fails", body = openapi::Failure),
    (status = 413, description = "more bytes than the server takes", body = openapi::Failure),
    (status = 415, description = "the body isn't said to be JSON", body = openapi::Failure),
    (status = 422, description = "it would write (`read_only`), or it reached a limit (`time_limit`, `row_limit`, \
        `memory_limit`, `answer_limit`)", body = openapi::Failure),
))]
async fn query(allowed: Allowed, headers: HeaderMap, body: Body) -> Answer {
    let local = Arc::clone(&allowed.local);
    body::check_json(&headers)?;
    let (form, kind) = form(&headers);
    let (body, held) = body::text(&allowed, body, COPIES).await?;
    // The other half of the memory is for answers.
    let memory = allowed.shared().limits.memory / 2;
    let limits = Limits { memory, ..Limits::default() };
    let run = move |work: &mut Work| {
        let _held = held;
        let Request { sql: query, params } = object::read(&body).map_err(|error| {
            Refusal::bad(format!("{error}; a query is {{\"sql\":\"SELECT ..\",\"params\":[..]}}"))
        })?;
        let source = match (local.database(), local.reader()) {
            (Err(_), Some(reader)) => Source::Reader(Arc::new(reader.clone())),
            (database, _) => Source::Database(database?.clone()),
        };
        let parameters = parameters(params)?;
        drop(body);
        now(&local)?;
        let mut sql = Connection::confined(source, limits)?;
        sql.end_when(work.gone());
        answer(work, &mut sql, (&query, &parameters), form)
    };
    let ((txid, bytes), held) = allowed.run(Kind::Sql, run).await?;
    let mut response = held.answer(kind, bytes);
    response.headers_mut().insert("annals-txid", txid.0.into());
    Ok(response)
}

/// The form of an answer.
#[derive(Clone, Copy)]
enum Form {
    Text(Format),
    #[cfg(feature = "arrow")]
    Arrow,
}

/// Returns the form that a client accepts.
fn form(headers: &HeaderMap) -> (Form, &'static str) {
    let kinds = [
        (Form::Text(Format::Json), "application/json"),
        (Form::Text(Format::Ndjson), "application/x-ndjson"),
        (Form::Text(Format::Csv), "text/csv"),
        #[cfg(feature = "arrow")]
        (Form::Arrow, annals_arrow::ipc::MEDIA_TYPE),
    ];
    let mut named = body::media_types(headers, header::ACCEPT);
    let found = named.find_map(|name| kinds.iter().find(|(_, kind)| *kind == name));
    *found.unwrap_or(&kinds[0])
}

fn answer(
    work: &mut Work,
    sql: &mut Connection,
    (query, parameters): (&str, &Parameters),
    form: Form,
) -> Answer<(Txid, Vec<u8>)> {
    let most = sql.limits().bytes;
    let txid = sql.snapshot()?.txid();
    let format = match form {
        Form::Text(format) => format,
        #[cfg(feature = "arrow")]
        Form::Arrow => {
            let mut columns = Covered::new(work, annals_sql::Columns::new(most), false);
            let ran = sql.run(query, parameters, &mut columns);
            let columns = columns.end(ran)?;
            let mut stream = Vec::new();
            annals_arrow::ipc::write(columns.into_reader()?, &mut stream)?;
            work.cover(stream.capacity())?;
            return Ok((txid, stream));
        }
    };
    let mut all = String::new();
    let render = Render::new(format, |text: &mut String| {
        all.push_str(text);
        text.clear();
        if all.len() as u64 > most { Err(SqlError::Bytes(most)) } else { Ok(()) }
    });
    let mut render = Covered::new(work, render, format != Format::Csv);
    let ran = sql.run(query, parameters, &mut render);
    drop(render.end(ran)?);
    work.cover(all.capacity())?;
    Ok((txid, all.into_bytes()))
}

/// Takes the one answer of a request, and the memory for it.
struct Covered<'w, A> {
    answer: A,
    work: &'w mut Work,
    bytes: usize,
    /// True if each row repeats the names of the columns.
    has_names: bool,
    /// The bytes of a row besides its values; `None` before the answer.
    per_row: Option<usize>,
    refused: Option<Refusal>,
}

impl<'w, A> Covered<'w, A> {
    const fn new(work: &'w mut Work, answer: A, has_names: bool) -> Self {
        Self { answer, work, bytes: 0, has_names, per_row: None, refused: None }
    }

    /// Returns the answer, if it is whole.
    fn end(self, ran: Result<(), SqlError>) -> Answer<A> {
        match self.refused {
            Some(refusal) => Err(refusal),
            None => Ok(ran.map(|()| self.answer)?),
        }
    }
}

impl<A: annals_sql::Answer> annals_sql::Answer for Covered<'_, A> {
    fn begin(&mut self, columns: &[(String, Option<String>)]) -> Result<(), SqlError> {
        // Two lists are no JSON, and two tables no CSV.
        if self.per_row.is_some() {
            let message =
                "a request has one statement with an answer: send another request for the next one";
            return Err(SqlError::Statement(message.to_owned()));
        }
        let names: usize = columns.iter().map(|(name, _)| name.len() + 4).sum();
        self.per_row = Some(if self.has_names { names } else { 2 });
        self.answer.begin(columns)
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        let bytes = |value: &ValueRef<'_>| match value {
            ValueRef::Text(bytes) => bytes.len(),
            // As two digits each.
            ValueRef::Blob(bytes) => 2 * bytes.len(),
            _ => size_of::<u64>(),
        };
        let values_bytes: usize = values.iter().map(bytes).sum();
        self.bytes += self.per_row.unwrap_or(0) + values_bytes;
        if let Err(refusal) = self.work.cover(self.bytes) {
            self.refused = Some(refusal);
            return Err(SqlError::Interrupted);
        }
        self.answer.row(values)
    }

    fn end(&mut self) -> Result<(), SqlError> {
        self.answer.end()
    }
}

/// Reads the values of parameters from JSON.
fn parameters(params: Option<&RawValue>) -> Answer<Parameters> {
    let wrong = |_| Refusal::bad("params: write a list for `?`, or an object for `:name`");
    match params.map(RawValue::get) {
        None | Some("null") => Ok(Parameters::None),
        Some(text) if text.starts_with('[') => {
            let listed: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            Ok(Parameters::Listed(listed.into_iter().map(parameter).collect::<Answer<_>>()?))
        }
        Some(text) => {
            let mut read = serde_json::Deserializer::from_str(text);
            let named =
                object::members(&mut read).map_err(|error| match text.starts_with('{') {
                    true => Refusal::bad(format!("params: {error}")),
                    false => wrong(error),
                })?;
            let named = named.into_iter().map(|(name, value)| Ok((name, parameter(value)?)));
            Ok(Parameters::Named(named.collect::<Answer<_>>()?))
        }
    }
}

/// Reads a value. Of a number its text tells whether it is a whole one.
fn parameter(json: &RawValue) -> Answer<Value> {
    let text = json.get();
    let out_of_range = || {
        Refusal::bad(format!(
            "params: {text} is out of range: SQLite's integers end at 2^63 - 1, and floats at 1.8e308; of a uint64 send the \
             digits as a text, and write annals_uint64(?)"
        ))
    };
    Ok(match text {
        "null" => Value::Null,
        "true" | "false" => Value::Integer((text == "true").into()),
        _ if text.starts_with(['[', '{']) => {
            return Err(Refusal::bad("params: each is null, true, false, a number or a text"));
        }
        _ if text.starts_with('"') => Value::Text(
            serde_json::from_str(text)
                .map_err(|error| Refusal::bad(format!("params: {text}: {error}")))?,
        ),
        _ if text.contains(['.', 'e', 'E']) => {
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            Value::Real(number.ok_or_else(out_of_range)?)
        }
        _ => Value::Integer(text.parse().map_err(|_| out_of_range())?),
    })
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        let (status, name) = match &error {
            SqlError::Other(_) => {
                return annals::Error::from(error).into();
            }
            SqlError::ReadOnly(_) => (StatusCode::UNPROCESSABLE_ENTITY, "read_only"),
            SqlError::Time(_) => (StatusCode::UNPROCESSABLE_ENTITY, "time_limit"),
            SqlError::Rows(_) => (StatusCode::UNPROCESSABLE_ENTITY, "row_limit"),
            SqlError::Memory(_) => (StatusCode::UNPROCESSABLE_ENTITY, "memory_limit"),
            SqlError::Bytes(_) => (StatusCode::UNPROCESSABLE_ENTITY, "answer_limit"),
            _ => (StatusCode::BAD_REQUEST, "sql"),
        };
        Self::new(status, name, error.to_string())
    }
}
