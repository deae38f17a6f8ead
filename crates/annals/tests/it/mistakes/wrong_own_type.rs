//! A type of the program that isn't made for the field, and a value of another type.
//~ doesn't satisfy `Email: FieldValue<i64>`
//~ note: the trait `FieldValue` must be implemented
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
