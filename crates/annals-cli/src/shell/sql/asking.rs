//! Whom to ask: a file here, or a server.

use std::sync::Arc;

use annals::storage::Interrupts;
use annals::{Error, Result};
use annals_sql::{Connection, Parameters, ValueRef};

use super::format::Sink;
#[cfg(feature = "net")]
use super::statements::split;
use crate::output::Output;

/// A database that is asked.
pub(crate) enum Asking {
    /// A file.
    File(Box<Connection>),
    /// A database on a server.
    #[cfg(feature = "net")]
    Server(Box<annals_replica::Http>),
}

impl Asking {
    /// Ends a running query at an interrupt.
    pub(crate) fn end_at(&mut self, interrupts: Arc<Interrupts>) {
        /// Steps of SQLite's machine between two looks.
        const STEPS: i32 = 1000;
        match self {
            Self::File(connection) => {
                let look = move || interrupts.take();
                // Without the handler, a query ends by itself.
                let _ = connection.inner_mut().progress_handler(STEPS, Some(look));
            }
            // The answer of a server is short, and ends by its limits.
            #[cfg(feature = "net")]
            Self::Server(_) => {}
        }
    }

    /// Asks, and prints the answers.
    pub(crate) fn ask(
        &mut self,
        sql: &str,
        parameters: &Parameters,
        sink: &Sink,
        output: &mut Output,
    ) -> Result<()> {
        match self {
            Self::File(connection) => sink.print(output, |answer| {
                connection.run(sql, parameters, answer).map_err(Error::from)
            }),
            #[cfg(feature = "net")]
            // One after the other, so that each answer is known for itself; a server has no transaction over several.
            Self::Server(http) => split(sql)
                .into_iter()
                .try_for_each(|sql| server::ask(http, sql, parameters, sink, output)),
        }
    }

    /// Returns the values of the first column of a query.
    pub(crate) fn list(&mut self, sql: &str) -> Result<Vec<String>> {
        match self {
            Self::File(connection) => {
                let rows = connection.rows(sql, &Parameters::None)?;
                let text = |row: &Vec<annals_sql::Value>| match row.first().map(ValueRef::from) {
                    Some(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                    _ => String::new(),
                };
                Ok(rows.iter().map(text).collect())
            }
            #[cfg(feature = "net")]
            Self::Server(http) => server::list(http, sql),
        }
    }
}

#[cfg(feature = "net")]
mod server {
    use annals::{Error, ErrorKind, Result};
    use annals_replica::Http;
    use annals_sql::{Parameters, Value, ValueRef};
    use serde_json::{Map, Value as Json, json};

    use crate::output::Output;
    use crate::shell::sql::format::{Format, Sink};

    fn json(value: &Value) -> Json {
        match value {
            Value::Null | Value::Blob(_) => Json::Null,
            Value::Integer(value) => (*value).into(),
            Value::Real(value) => (*value).into(),
            Value::Text(text) => text.as_str().into(),
        }
    }

    /// Returns the body of a query.
    fn body(sql: &str, parameters: &Parameters) -> String {
        let params = match parameters {
            Parameters::None => Json::Null,
            Parameters::Listed(values) => values.iter().map(json).collect(),
            Parameters::Named(values) => {
                let named = values.iter().map(|(name, value)| (name.clone(), json(value)));
                Json::Object(named.collect::<Map<_, _>>())
            }
        };
        json!({ "sql": sql, "params": params }).to_string()
    }

    pub(super) fn ask(
        http: &Http,
        sql: &str,
        parameters: &Parameters,
        sink: &Sink,
        output: &mut Output,
    ) -> Result<()> {
        let body = body(sql, parameters);
        let accept = match sink.format {
            Format::Json => "application/json",
            Format::Ndjson => "application/x-ndjson",
            #[cfg(feature = "arrow")]
            Format::Parquet | Format::Arrow => annals_arrow::ipc::MEDIA_TYPE,
            _ => "text/csv",
        };
        let answer = http.sql(&body, accept)?;
        #[cfg(feature = "arrow")]
        if sink.format.is_binary() {
            return crate::shell::sql::columnar::write(sink.format, answer, output);
        }
        let text = text(answer)?;
        match sink.format {
            Format::Csv if !sink.has_header => {
                let first = records(&text).next().map_or(0, |(_, len)| len);
                output.write(text.get(first..).unwrap_or_default())
            }
            Format::Json | Format::Ndjson | Format::Csv => output.write(&text),
            _ => sink.print(output, |answer| {
                let mut records = records(&text);
                let Some((names, _)) = records.next() else { return Ok(()) };
                let names = names.into_iter().map(|name| (name.unwrap_or_default(), None));
                answer.begin(&names.collect::<Vec<_>>()).map_err(Error::from)?;
                for (record, _) in records {
                    let values = record.iter().map(|text| match text {
                        Some(text) => ValueRef::Text(text.as_bytes()),
                        None => ValueRef::Null,
                    });
                    answer.row(&values.collect::<Vec<_>>()).map_err(Error::from)?;
                }
                answer.end().map_err(Error::from)
            }),
        }
    }

    fn text(answer: Vec<u8>) -> Result<String> {
        String::from_utf8(answer)
            .map_err(|_| Error::new(ErrorKind::Corrupt, "the server's answer isn't UTF-8"))
    }

    /// Returns the texts of the first column.
    pub(super) fn list(http: &Http, sql: &str) -> Result<Vec<String>> {
        let text = text(http.sql(&body(sql, &Parameters::None), "text/csv")?)?;
        let first = |(mut record, _): (Vec<Option<String>>, usize)| {
            record.first_mut().and_then(Option::take).unwrap_or_default()
        };
        Ok(records(&text).skip(1).map(first).collect())
    }

    /// Returns the records of CSV as the server writes it, each with its end; null is an empty one without quotes.
    fn records(text: &str) -> impl Iterator<Item = (Vec<Option<String>>, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
            let (mut record, mut value, mut is_quoted, mut is_text) =
                (Vec::new(), String::new(), false, false);
            let mut chars = rest.char_indices().peekable();
            let mut end = rest.len();
            while let Some((place, c)) = chars.next() {
                match c {
                    '"' if is_quoted && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                        value.push('"');
                        chars.next();
                    }
                    '"' => (is_quoted, is_text) = (!is_quoted, true),
                    ',' | '\n' if !is_quoted => {
                        let taken = std::mem::take(&mut value);
                        record.push((is_text || !taken.is_empty()).then_some(taken));
                        is_text = false;
                        if c == '\n' {
                            end = place + 1;
                            break;
                        }
                    }
                    c => value.push(c),
                }
            }
            at += end;
            Some((record, at))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::records;

        #[test]
        fn records_are_read_as_they_are_written() {
            let text = "a,\"b \"\"c\"\"\"\n1,\n\"\",\"x\ny\"\n";
            let read: Vec<_> = records(text).map(|(record, _)| record).collect();
            let some = |text: &str| Some(text.to_owned());
            assert_eq!(read[0], [some("a"), some("b \"c\"")]);
            assert_eq!(read[1], [some("1"), None]);
            assert_eq!(read[2], [some(""), some("x\ny")]);
            assert_eq!(read.len(), 3);
        }
    }
}
