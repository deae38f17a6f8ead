//! A number for a string.
//~ expected `&str`, found integer
annals::schema!("tutorial.schema");
use tutorial::city;

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| Ok(tx.insert(city::New { name: 59000 })?))?;
    Ok(())
}
