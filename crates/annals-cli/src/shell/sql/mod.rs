//! SQL over a database: of a file or a server, its answers in some formats, and a dialog.

mod answer;
mod asking;
#[cfg(feature = "arrow")]
mod columnar;
mod dots;
mod file;
mod format;
pub(crate) mod interactive;
pub(crate) mod script;
mod separated;
mod statements;

pub(crate) use asking::Asking;
pub(crate) use file::{Printing, to_file};
pub(crate) use format::{Format, Sink};

use annals::{Error, Result};
use annals_sql::{Parameters, Value};

/// Reads the values of parameters: all in order, or all with names.
pub(crate) fn parameters(texts: &[String]) -> Result<Parameters> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let named = |text: &String| {
        let (name, text) = text.split_once('=')?;
        is_name(name).then(|| (name.to_owned(), value(text)))
    };
    if texts.is_empty() {
        return Ok(Parameters::None);
    }
    let all: Vec<_> = texts.iter().filter_map(named).collect();
    match all.len() {
        0 => Ok(Parameters::Listed(texts.iter().map(|text| value(text)).collect())),
        count if count == texts.len() => Ok(Parameters::Named(all)),
        _ => Err(Error::invalid("--param: give all parameters names, or none of them")),
    }
}

/// Reads a value: a number, NULL, or else a text.
fn value(text: &str) -> Value {
    if text == "NULL" {
        return Value::Null;
    }
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(number)) if text.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) => {
            Value::Real(number)
        }
        _ => Value::Text(text.to_owned()),
    }
}
