//! A transaction ends with a text.
//~ `std::string::String` isn't a `std::error::Error`; for a text or a boxed error, `.map_err(annals::Abort::new)?`
//~ error[E0277]: the trait bound `&str: Into<Abort>` is not satisfied
annals::schema!("tutorial.schema");

fn name(text: &str) -> Result<&str, String> {
    if text.is_empty() { Err("a city needs a name".to_owned()) } else { Ok(text) }
}

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| {
        tx.insert(tutorial::city::New { name: name("")? })?;
        if tx.city().len() > 1 {
            return Err("there is no room".into());
        }
        Ok(())
    })
}
