//! A column of another type.
//~ error[E0277]: this column takes a slice of `f64`
annals::schema!("vectors.schema");
use vectors::sample;

fn main() -> annals::Result<()> {
    let db = vectors::Database::open("a.annals")?;
    db.write(|tx| tx.update_vector(sample::LEVEL, sample::Id::from_u64(0), &["a", "b"]))
}
