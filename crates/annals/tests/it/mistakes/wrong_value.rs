//! A number for a string.
//~ expected `&str`, found integer
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| tx.city().insert(59000))?;
    Ok(())
}
