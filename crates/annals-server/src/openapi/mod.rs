//! The description of the routes for programs (OpenAPI 3.1), made of the routes themselves: of all databases, or of one
//! with its tables.

mod shapes;
mod tables;

use std::sync::Arc;

use annals::Schema;
use axum::response::IntoResponse;
use axum::{Extension, Json, Router};
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::Answer;
use crate::parameters::{self, Parameters};
use crate::rights::Allowed;
use crate::shared::Shared;

pub(crate) use shapes::*;

/// The parts of paths, and what they mean.
const PARTS: [(&str, &str, &str); 5] = [
    ("name", "string", "the name of a database"),
    ("table", "string", "the name of a table"),
    ("id", "integer", "the id of a row"),
    ("number", "integer", "the number of a segment"),
    ("root", "integer", "the number of a root of the image"),
];

/// The statuses with which any request about a database can be refused.
const REFUSALS: [(&str, &str); 5] = [
    ("400", "the request isn't one that the server understands"),
    ("401", "no valid token"),
    (
        "403",
        "the token's role doesn't allow it, or the host or origin of the request isn't allowed",
    ),
    ("404", "no such database, table, row or moment"),
    ("500", "the database can't be read or written"),
];

pub(crate) fn routes() -> OpenApiRouter<Arc<Shared>> {
    OpenApiRouter::new().routes(routes!(of_all)).routes(routes!(of_one))
}

/// Adds the description to the routes that it describes, and pages, which it doesn't; refuses parameters that a route
/// doesn't have. The pages come with the parameters of each of their paths.
pub(crate) fn describe(
    routes: OpenApiRouter<Arc<Shared>>,
    pages: Router<Arc<Shared>>,
    of_pages: [(&'static str, &'static [&'static str]); 3],
) -> Router<Arc<Shared>> {
    let (routes, openapi) = routes.split_for_parts();
    // All of it is text and numbers.
    let mut openapi = serde_json::to_value(openapi).unwrap_or_default();
    complete(&mut openapi);
    let known = Parameters::of(&openapi).and(of_pages);
    let check = axum::middleware::from_fn_with_state(Arc::new(known), parameters::check);
    let routes = routes.layer(Extension(Arc::new(openapi)));
    routes.merge(pages).layer(check)
}

/// Adds what all routes have in common.
fn complete(openapi: &mut Value) {
    openapi["info"] = json!({
        "title": "Annals", "version": env!("CARGO_PKG_VERSION"),
        "description": "Databases with all of their history, over HTTP.",
    });
    openapi["components"]["securitySchemes"] =
        json!({ "token": { "type": "http", "scheme": "bearer" } });
    for (path, methods) in members(&mut openapi["paths"]) {
        let is_of_database = path.starts_with("/v1/{name}");
        for (_, operation) in members(methods) {
            if let Some(text) = operation.get("summary").and_then(Value::as_str) {
                operation["summary"] = text.trim_end_matches('.').into();
            }
            for (part, kind, meaning) in PARTS {
                if path.contains(&format!("{{{part}}}")) {
                    let parameter = json!({
                        "name": part, "in": "path", "required": true, "description": meaning,
                        "schema": { "type": kind },
                    });
                    add(&mut operation["parameters"], parameter);
                }
            }
            if !is_of_database {
                continue;
            }
            operation["security"] = json!([{ "token": [] }]);
            for (status, meaning) in REFUSALS {
                operation["responses"][status] = refusal(meaning);
            }
        }
    }
}

fn refusal(meaning: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Failure" });
    json!({ "description": meaning, "content": { "application/json": { "schema": schema } } })
}

/// Adds a value to a list, which may not be there yet.
fn add(list: &mut Value, value: Value) {
    match list {
        Value::Array(list) => list.push(value),
        _ => *list = json!([value]),
    }
}

fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

/// Returns this description of all routes.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, body = Object)))]
async fn of_all(Extension(openapi): Extension<Arc<Value>>) -> Json<Value> {
    Json(Value::clone(&openapi))
}

/// Returns the description of one database: with a path for each of its tables, and the types of their fields.
#[utoipa::path(get, path = "/v1/{name}/openapi.json", responses((status = 200, body = Object)))]
async fn of_one(allowed: Allowed, Extension(openapi): Extension<Arc<Value>>) -> Answer {
    let now = allowed.local.read();
    Ok(Json(of_database(&openapi, allowed.name(), now.schema())).into_response())
}

/// Returns the part of a description that is about one database, whose URL its paths are relative to.
fn of_database(openapi: &Value, name: &str, schema: &Schema) -> Value {
    let mut openapi = openapi.clone();
    openapi["info"]["title"] = name.into();
    openapi["servers"] = json!([{ "url": format!("/v1/{name}") }]);
    let general = std::mem::take(&mut openapi["paths"]);
    let mut paths = Map::new();
    for (path, mut methods) in general.as_object().cloned().unwrap_or_default() {
        let Some(path) = path.strip_prefix("/v1/{name}") else { continue };
        for (_, operation) in members(&mut methods) {
            without(operation, "name");
        }
        if path.contains("{table}") {
            paths.extend(tables::paths(path, &methods, schema));
        } else {
            paths.insert(if path.is_empty() { "/" } else { path }.to_owned(), methods);
        }
    }
    openapi["paths"] = paths.into();
    let components = &mut openapi["components"]["schemas"];
    tables::components(schema).for_each(|(name, shape)| components[name] = shape);
    openapi
}

/// Removes a parameter of a path from an operation.
fn without(operation: &mut Value, part: &str) {
    if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|it| it["name"] != part || it["in"] != "path");
    }
}
