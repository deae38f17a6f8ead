//! The schema at an earlier moment.

use annals_schema::Schema;

use crate::{Error, Result};

/// Returns the schema that the first commands of a present one build.
pub(in crate::db) fn schema_of(present: &Schema, commands: u64) -> Result<Schema> {
    let count = usize::try_from(commands).unwrap_or(usize::MAX);
    if count == present.commands().len() {
        return Ok(present.clone());
    }
    if count > present.commands().len() {
        return Err(Error::corrupt(format!(
            "the history index has {count} commands of the schema, more than the journal"
        ))
        .advising("close the database and delete the image file, where the index is; nothing is lost: both are made again"));
    }
    let mut schema = Schema::default();
    for command in present.commands().iter().take(count) {
        schema.apply(command.clone()).map_err(|error| Error::corrupt(error.to_string()))?;
    }
    Ok(schema)
}
