//! SQL: queries over the present state, the past and the history. They only read, and end at limits.

use std::sync::Arc;

use annals_sql::{Connection, Format, Limits, Parameters, Render, Source, SqlError, Value};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refusal};
use crate::openapi;
use crate::shared::Shared;
use crate::{Role, blocking, body};

/// The most bytes of a request.
const MOST: u64 = 16 << 20;
/// So many queries run at the same time; further ones wait.
const AT_ONCE: usize = 8;

static QUERIES: Semaphore = Semaphore::const_new(AT_ONCE);

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(query))
}

/// A query, and the values of its parameters: a list for `?`, or an object for `:name`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Request {
    sql: String,
    #[serde(default)]
    params: serde_json::Value,
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
async fn query(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let local = Arc::clone(&shared.permit(&headers, &name, Role::Read)?.local);
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // Pages of other sites can send other types without asking.
    if !text(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json")) {
        let message = "send the header `Content-Type: application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    let (form, kind) = form(text(header::ACCEPT).unwrap_or_default());
    let body = body::text(body, MOST.min(shared.limits.push), shared.limits.silence).await?;
    // It is never closed, so that this can't fail.
    let turn = QUERIES.acquire().await;
    let done = blocking::run(move || {
        let request: Request = serde_json::from_str(&body).map_err(|error| {
            Refusal::bad(format!("{error}; a query is {{\"sql\":\"SELECT ..\",\"params\":[..]}}"))
        })?;
        let source = match (local.database(), local.reader()) {
            (Err(_), Some(reader)) => Source::Reader(Arc::new(reader.clone())),
            (database, _) => Source::Database(database?.clone()),
        };
        let mut sql = Connection::confined(source, Limits::default())?;
        answer(&mut sql, &request, form)
    });
    let (txid, bytes) = done.await?;
    drop(turn);
    let headers = [(header::CONTENT_TYPE.as_str(), kind), ("annals-txid", &txid)];
    let mut response: Response = bytes.into_response();
    for (name, value) in headers {
        let name = header::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
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
fn form(accept: &str) -> (Form, &'static str) {
    let kinds = [
        (Form::Text(Format::Json), "application/json"),
        (Form::Text(Format::Ndjson), "application/x-ndjson"),
        (Form::Text(Format::Csv), "text/csv"),
        #[cfg(feature = "arrow")]
        (Form::Arrow, annals_arrow::ipc::MEDIA_TYPE),
    ];
    let named = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let found = named.filter_map(|name| kinds.iter().find(|(_, kind)| *kind == name)).next();
    *found.unwrap_or(&kinds[0])
}

fn answer(sql: &mut Connection, request: &Request, form: Form) -> Answer<(String, Vec<u8>)> {
    let parameters = parameters(&request.params)?;
    let most = Limits::default().bytes;
    let format = match form {
        Form::Text(format) => format,
        #[cfg(feature = "arrow")]
        Form::Arrow => {
            let mut columns = annals_sql::Columns::new(most);
            let txid = sql.snapshot()?.txid().0;
            sql.run(&request.sql, &parameters, &mut columns)?;
            let mut stream = Vec::new();
            annals_arrow::ipc::write(columns.into_reader()?, &mut stream)?;
            return Ok((txid.to_string(), stream));
        }
    };
    let mut all = String::new();
    let mut render = Render::new(format, |text: &mut String| {
        all.push_str(text);
        text.clear();
        if all.len() as u64 > most { Err(SqlError::Bytes(most)) } else { Ok(()) }
    });
    let txid = sql.snapshot()?.txid().0;
    sql.run(&request.sql, &parameters, &mut render)?;
    Ok((txid.to_string(), all.into_bytes()))
}

/// Reads the values of parameters from JSON.
fn parameters(params: &serde_json::Value) -> Answer<Parameters> {
    use serde_json::Value as Json;
    let value = |json: &Json| {
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Integer((*value).into()),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => Value::Integer(number),
                (None, Some(number)) if !number_is_whole(number) => Value::Real(number),
                _ => {
                    return Err(Refusal::bad(format!(
                        "params: {number} is too large for SQLite; send it as a text, and write annals_uint64(?)"
                    )));
                }
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(_) | Json::Object(_) => {
                return Err(Refusal::bad("params: each is null, true, false, a number or a text"));
            }
        })
    };
    match params {
        Json::Null => Ok(Parameters::None),
        Json::Array(values) => {
            Ok(Parameters::Listed(values.iter().map(value).collect::<Answer<_>>()?))
        }
        Json::Object(values) => {
            let named = values.iter().map(|(name, json)| Ok((name.clone(), value(json)?)));
            Ok(Parameters::Named(named.collect::<Answer<_>>()?))
        }
        _ => Err(Refusal::bad("params: write a list for `?`, or an object for `:name`")),
    }
}

/// True if a number has no fraction, and is larger than those that floats tell apart.
fn number_is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 2e19
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
