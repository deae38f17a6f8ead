//! Requests to a server.

use std::time::Duration;

use annals::{Command, Database, FieldNumber, RowId, TableNumber, Type, ValueRef};
use annals_server::{Limits, Server};
use axum::body::Body;
use axum::http::{Method, Request, Response, header};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

const ITEM: TableNumber = TableNumber(0);
/// An answer about so small a database has fewer bytes.
const MOST: usize = 1 << 20;

/// Takes the bytes for a request: a line with the method and the path, lines with headers, an empty line, and the body. It is
/// sent to a server of a small database, to which anybody may write.
///
/// # Panics
/// If it isn't answered, the answer blames the server, or the database contradicts itself afterwards.
pub fn request(input: &[u8]) {
    let Some(request) = parse(input) else { return };
    let database = database();
    let limits = Limits { wait: Duration::ZERO, push: 1 << 20, ..Limits::default() };
    let server = Server::new().database("db", database.clone());
    let Ok(server) = server else { return };
    let router = server.open_to_all().limits(limits).router();
    let runtime: std::io::Result<Runtime> = Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let answered = router.oneshot(request).await;
        let answer = answered.unwrap_or_else(|never| match never {});
        check(answer).await;
    });
    drop(runtime);
    let consistent = database.read().check();
    assert!(consistent.is_ok(), "{consistent:?}");
}

async fn check(answer: Response<Body>) {
    let (parts, body) = answer.into_parts();
    assert_ne!(parts.status.as_u16(), 500, "the server is at fault");
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    if kind == "text/event-stream" {
        return; // without an end
    }
    let body = axum::body::to_bytes(body, MOST).await;
    let body = body.unwrap_or_else(|error| panic!("no answer, or a long one: {error}"));
    if parts.status.is_client_error() && parts.status.as_u16() != 416 {
        let text = String::from_utf8_lossy(&body);
        assert!(kind.starts_with("application/json") || body.is_empty(), "{kind}: {text}");
        assert!(body.is_empty() || text.contains("\"message\":"), "it says nothing: {text}");
    }
}

fn parse(input: &[u8]) -> Option<Request<Body>> {
    let mut rest = input;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at_checked(end)?;
        rest = after.get(1..).unwrap_or_default();
        Some(line)
    };
    let first = String::from_utf8_lossy(line()?).into_owned();
    let (method, path) = first.split_once(' ')?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?);
    request = request.uri(path).header(header::HOST, "localhost");
    while let Some(header) = line().filter(|line| !line.is_empty()) {
        let at = header.iter().position(|byte| *byte == b':')?;
        let (name, value) = header.split_at_checked(at)?;
        request = request.header(name, value.get(1..).unwrap_or_default().trim_ascii());
    }
    request.body(Body::from(rest.to_vec())).ok()
}

/// Creates a database with an index, a few rows, and some history.
fn database() -> Database {
    let made = (|| {
        let database = Database::in_memory()?;
        let field = |name: &str, ty| Command::AddField {
            table: ITEM,
            name: name.to_owned(),
            ty,
            nullable: false,
            default: None,
        };
        database.write(|tx| {
            tx.apply_command(&Command::CreateTable { name: "item".to_owned() })?;
            tx.apply_command(&field("name", Type::String))?;
            tx.apply_command(&field("size", Type::Int16))?;
            tx.apply_command(&Command::CreateIndex {
                name: "by_name".to_owned(),
                table: ITEM,
                fields: vec![FieldNumber(0)],
                descending: Vec::new(),
                collated: Vec::new(),
                unique: true,
            })
        })?;
        for (name, size) in [("one", 1), ("two", 2), ("three", 3)] {
            let row = [ValueRef::String(name), ValueRef::Int16(size)];
            database.write(|tx| tx.insert(ITEM, &row).map(drop))?;
        }
        database.write(|tx| {
            tx.comment("a change")?;
            tx.update(ITEM, RowId(1), FieldNumber(1), ValueRef::Int16(20))
        })?;
        Ok::<_, annals::Error>(database)
    })();
    made.unwrap_or_else(|error| panic!("a database in memory can't be made: {error}"))
}
