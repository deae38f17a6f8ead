//! The meaning of names in a line: finding tables, fields and indexes, and the errors for wrong
//! names.

use super::fate::{Fates, Name};
use crate::diagnostics::suggest;
use crate::{Command, Diagnostic, Field, Index, Schema, SchemaError, Table, Token, shorten};

/// A diagnostic, and the name that an earlier wrong line may be to blame for.
pub(super) struct Mistake {
    pub(super) diagnostic: Box<Diagnostic>,
    pub(super) about: About,
}

/// Possible causes of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Nothing but its own line.
    Nothing,
    /// A name is missing: a wrong line may have been meant to define it, or one below does.
    Missing {
        name: Name,
        /// True if no line above defined it.
        is_new: bool,
    },
    /// A name is still there: a wrong line may have been to free it.
    Present(String),
}

impl From<Diagnostic> for Mistake {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostic: Box::new(diagnostic), about: About::Nothing }
    }
}

/// The schema up to a line, and the fate of old names.
pub(super) struct Scope<'s> {
    pub(super) schema: &'s Schema,
    fates: &'s Fates,
    /// The name of the file with the line.
    file: &'s str,
}

impl<'s> Scope<'s> {
    pub(super) const fn new(schema: &'s Schema, fates: &'s Fates) -> Self {
        Self { schema, fates, file: "" }
    }

    /// Sets the file of the line.
    pub(super) const fn in_file(mut self, file: &'s str) -> Self {
        self.file = file;
        self
    }

    pub(super) fn table(&self, token: &Token<'_>) -> Result<&'s Table, Mistake> {
        self.schema.table_named(&token.text).ok_or_else(|| {
            let names = self.schema.tables().iter().map(|table| table.name.as_str());
            let message = format!("there is no table `{}`", shorten(&token.text));
            self.missing(token, Name::Table(token.text.to_string()), message, names)
        })
    }

    pub(super) fn field(&self, table: &'s Table, token: &Token<'_>) -> Result<&'s Field, Mistake> {
        table.field_named(&token.text).ok_or_else(|| {
            let names = table.fields.iter().map(|field| field.name.as_str());
            let message = format!("table `{}` has no field `{}`", table.name, shorten(&token.text));
            let name = Name::Field(table.number, token.text.to_string());
            self.missing(token, name, message, names)
        })
    }

    pub(super) fn index(&self, token: &Token<'_>) -> Result<&'s Index, Mistake> {
        self.schema.index_named(&token.text).ok_or_else(|| {
            let names = self.schema.indexes().iter().map(|index| index.name.as_str());
            let message = format!("there is no index `{}`", shorten(&token.text));
            self.missing(token, Name::Index(token.text.to_string()), message, names)
        })
    }

    /// Returns the error for a name that isn't among these.
    fn missing<'n>(
        &self,
        token: &Token<'_>,
        name: Name,
        message: String,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Mistake {
        let story = self.fates.story(&name, self.file);
        let is_new = story.is_none();
        let hint = story.unwrap_or_else(|| suggest(&token.text, name.what(), names));
        Mistake {
            diagnostic: Box::new(Diagnostic::new(token, message).hint(hint)),
            about: About::Missing { name, is_new },
        }
    }

    /// Checks the rules of the model: names that are invalid or in use; items that can't be dropped
    /// because others need them. `token` is the place of the error.
    pub(super) fn check(&self, command: Command, token: &Token<'_>) -> Result<Command, Mistake> {
        self.schema.check(&command).map_err(|error| {
            let (message, mut hint) = explain(&error);
            let user = match (&error, Name::defined_by(&command)) {
                (SchemaError::NameInUse(_), Some((name, _))) => self.fates.user(&name, self.file),
                _ => None,
            };
            if let Some(user) = user {
                hint = format!("{user} has it; {hint}");
            }
            let about = match &error {
                SchemaError::NameInUse(name) | SchemaError::Indexed(name) => {
                    About::Present(name.clone())
                }
                SchemaError::Referenced { field, .. } => About::Present(field.clone()),
                _ => About::Nothing,
            };
            Mistake { diagnostic: Box::new(Diagnostic::new(token, message).hint(hint)), about }
        })?;
        Ok(command)
    }
}

/// Returns the problem, and the remedy.
fn explain(error: &SchemaError) -> (String, String) {
    match error {
        SchemaError::NameInUse(_) => (error.to_string(), "choose another name".to_owned()),
        SchemaError::BadName(bad) => (
            format!("`{}` is not a name", shorten(bad)),
            "use a letter or `_`, then letters, digits and `_`, at most 255 in all".to_owned(),
        ),
        SchemaError::Indexed(index) => (
            format!("index `{index}` is on the field"),
            format!("write `drop_index {index}` above this line"),
        ),
        SchemaError::Referenced { table, field } => (
            format!("field `{field}` of table `{table}` refers to the table, and is enforced"),
            format!("write `drop_field {table} {field}` above this line"),
        ),
        SchemaError::NoEnum(field) => {
            (format!("field `{field}` is no enum"), "only an enum has variants".to_owned())
        }
        SchemaError::NeededVariant(field, variant) => (
            format!(
                "`{variant}` is the first variant or the default of field `{field}`, and stays"
            ),
            format!("give it another name: `rename_variant TABLE {field} {variant} NAME`"),
        ),
        _ => (error.to_string(), "look at what the line says".to_owned()),
    }
}
