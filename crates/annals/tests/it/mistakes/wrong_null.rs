//! Text for a number that may be null.
//~ expected `Option<f64>`, found `&str`
annals::schema!("vectors.schema");

fn main() -> annals::Result<()> {
    let db = vectors::Database::open("a.annals")?;
    db.write(|tx| tx.sample().insert("a", 1.0, "none"))?;
    Ok(())
}
