//! Text for a number that may be null.
//~ expected `Option<f64>`, found `&str`
//~ error[E0277]: this takes `f64`, or an `Option` of it, and not `&str`
annals::schema!("vectors.schema");
use vectors::sample;

fn main() -> annals::Result<()> {
    let db = vectors::Database::open("a.annals")?;
    db.write(|tx| Ok(tx.insert(sample::New { name: "a", level: 1.0, error: "none" })?))?;
    db.write(|tx| {
        tx.edit(sample::Id::from_u64(0))?.set_error("none")?;
        Ok(())
    })
}
