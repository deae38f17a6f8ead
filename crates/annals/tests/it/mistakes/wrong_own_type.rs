//! A type of the program that isn't made for the field, and a value of another type.
//~ error[E0277]: `Email` can't be the type of a field whose stored values are `i64`
//~ note: implement `annals::FieldValue<i64>` for it, or write another type after `as` in the schema
annals::schema!("own.schema");

#[derive(Clone, Debug, PartialEq)]
pub struct Email(String);

impl annals::FieldValue<str> for Email {
    fn from_stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn to_stored(&self) -> &str {
        &self.0
    }
}

fn main() {}
