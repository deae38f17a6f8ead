//! The schema that generated code was made from.

use std::sync::OnceLock;

use annals_schema::Schema;

use crate::{Custom, Error, Result};

/// A schema as text in the program, parsed when it is first needed.
#[derive(Debug)]
pub struct CompiledSchema {
    text: &'static str,
    parsed: OnceLock<Schema>,
}

impl CompiledSchema {
    /// Takes the canonical text of a schema.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self { text, parsed: OnceLock::new() }
    }

    /// Gives the schema; parses it the first time.
    ///
    /// # Errors
    /// The text is no schema, which the generator rules out.
    pub fn get(&self) -> Result<&Schema> {
        if let Some(schema) = self.parsed.get() {
            return Ok(schema);
        }
        let file = annals_schema::parse(self.text).map_err(|mistakes| {
            Error::invalid(annals_schema::render_all(&mistakes, "the program's schema"))
        })?;
        Ok(self.parsed.get_or_init(|| file.schema))
    }
}

/// Refuses a `custom` that generated code has no function for, which the generator rules out.
///
/// # Errors
/// Always.
pub fn unknown_custom(custom: Custom<'_>) -> Result<()> {
    let Custom { name, number } = custom;
    Err(Error::invalid(format!("the program has no function for `custom {name}`, number {number}")))
}
