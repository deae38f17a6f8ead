//! A transaction returns what it has borrowed.
//~ error: lifetime may not live long enough
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    let city = db.write(|tx| {
        let id = tx.insert(tutorial::city::New { name: "Lille" })?;
        Ok(tx.city().require(id)?)
    })?;
    assert_eq!(city.name(), "Lille");
    Ok(())
}
