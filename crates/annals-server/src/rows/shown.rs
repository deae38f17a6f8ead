//! The fields that are sent of rows.

use std::borrow::Cow;

use annals::store::{IndexRows, Rows};
use annals::{FieldNumber, Table};

use crate::answer::{Answer, Refusal};

/// What is sent of the rows of a table: it, with no other fields than these.
pub(super) struct Shown<'t> {
    pub(super) table: Cow<'t, Table>,
    /// The fields, if they aren't all.
    fields: Option<Vec<FieldNumber>>,
}

impl<'t> Shown<'t> {
    /// Reads the names of fields: a field `id` is `TABLE.id`, as in rows.
    pub(super) fn new(table: &'t Table, fields: Option<&str>) -> Answer<Self> {
        let Some(fields) = fields else {
            return Ok(Self { table: Cow::Borrowed(table), fields: None });
        };
        let own = format!("{}.id", table.name);
        let names = fields.split(',').map(|name| if name == own { "id" } else { name });
        let table = table.only(names);
        let table = table.map_err(|error| Refusal::bad(format!("fields: {error}")))?;
        let fields = Some(table.fields.iter().map(|field| field.number).collect());
        Ok(Self { table: Cow::Owned(table), fields })
    }

    /// Has no field read: for the ids alone.
    #[cfg(feature = "arrow")]
    pub(super) const fn nothing(table: &'t Table) -> Self {
        Self { table: Cow::Borrowed(table), fields: Some(Vec::new()) }
    }

    /// Has only what is sent of rows read.
    pub(super) fn by_id<'r>(&self, rows: Rows<'r>) -> Rows<'r> {
        match &self.fields {
            Some(fields) => rows.reading(fields),
            None => rows,
        }
    }

    pub(super) fn by_key<'r>(&self, rows: IndexRows<'r>) -> IndexRows<'r> {
        match &self.fields {
            Some(fields) => rows.reading(fields),
            None => rows,
        }
    }
}
