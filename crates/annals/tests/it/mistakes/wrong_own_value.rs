//! A text where the program's type is due.
//~ error[E0277]: this takes `Email` or `&Email`, and not `&str`
//~ expected `Email`, found `&str`
annals::schema!("own_text.schema");

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

fn main() -> annals::Result<()> {
    let db = own_text::Database::in_memory()?;
    db.write(|tx| Ok(tx.insert(own_text::person::New { email: "ada@example.com" })?))?;
    db.read().person().by_email().get("ada@example.com")?;
    Ok(())
}
