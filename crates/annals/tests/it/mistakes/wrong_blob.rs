//! Bytes where a blob is wanted.
//~ error[E0277]: this field takes a `annals::Blob`, an `Option` of it, or `None`
annals::schema!("blobs.schema");

fn main() -> annals::Result<()> {
    let db = blobs::Database::open("a.annals")?;
    db.write(|tx| tx.file().insert("hello.txt", &b"hello"[..]))?;
    Ok(())
}
