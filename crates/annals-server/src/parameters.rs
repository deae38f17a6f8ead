//! The query parameters of each route. A request with another parameter is refused: else a misspelt one would be
//! ignored silently.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use crate::answer::{Answer, Refusal};

/// The names of the query parameters, by path and by method in lower case.
#[derive(Debug)]
pub(crate) struct Parameters(BTreeMap<String, BTreeMap<String, Vec<String>>>);

impl Parameters {
    /// Collects the names from the OpenAPI description of the routes.
    pub(crate) fn of(openapi: &Value) -> Self {
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let names = |operation: &Value| {
            let all = operation["parameters"].as_array().into_iter().flatten();
            let all = all.filter(|it| it["in"] == "query").filter_map(|it| it["name"].as_str());
            all.map(str::to_owned).collect()
        };
        let of_path = |(path, methods): (String, Value)| {
            let methods = object(&methods).into_iter();
            (path, methods.map(|(method, operation)| (method, names(&operation))).collect())
        };
        Self(object(&openapi["paths"]).into_iter().map(of_path).collect())
    }

    /// Adds the names of paths that aren't in the description, and that answer only `GET` requests.
    pub(crate) fn and(
        mut self,
        paths: impl IntoIterator<Item = (&'static str, &'static [&'static str])>,
    ) -> Self {
        self.0.extend(paths.into_iter().map(|(path, names)| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            (path.to_owned(), BTreeMap::from([("get".to_owned(), names)]))
        }));
        self
    }

    fn check(&self, request: &Request) -> Answer<()> {
        let method = match *request.method() {
            Method::HEAD => "get".to_owned(),
            ref method => method.as_str().to_lowercase(),
        };
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        let known = path.and_then(|path| self.0.get(path)?.get(&method));
        // A query that can't be parsed is left to the handler, which refuses it.
        let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let (Some(known), Ok(Query(given))) = (known, given) else { return Ok(()) };
        match given.iter().find(|(name, _)| !known.contains(name)) {
            Some((name, _)) => Err(unknown(name, known)),
            None => Ok(()),
        }
    }
}

fn unknown(name: &str, known: &[String]) -> Refusal {
    let near = annals_schema::nearest(name, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    let known = match known {
        [] => "this path has no parameters".to_owned(),
        known => format!("the parameters of this path are: {}", known.join(", ")),
    };
    Refusal::bad(format!("there is no parameter {name:?}{near}; {known}"))
}

/// Refuses a request with a parameter that its route doesn't have.
pub(crate) async fn check(
    State(parameters): State<Arc<Parameters>>,
    request: Request,
    next: Next,
) -> Response {
    match parameters.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
