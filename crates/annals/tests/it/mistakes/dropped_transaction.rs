//! A transaction that nobody keeps.
//~ a transaction that isn't committed is rolled back
#![deny(unused_must_use)]
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.begin()?;
    tutorial::Database::open("b.annals")?;
    Ok(())
}
