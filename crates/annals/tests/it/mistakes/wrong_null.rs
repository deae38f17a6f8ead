//! Text for a number that may be null.
//~ error[E0277]: this field takes a `f64`, an `Option` of it, or `None`
//~ `&str` is no value of this field
annals::schema!("vectors.schema");

fn main() -> annals::Result<()> {
    let db = vectors::Database::open("a.annals")?;
    db.write(|tx| tx.sample().insert("a", 1.0, "none"))?;
    Ok(())
}
