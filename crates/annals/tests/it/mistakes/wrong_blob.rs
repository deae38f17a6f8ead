//! Bytes where a blob is wanted.
//~ expected `Blob`, found `&[u8]`
//~ error[E0277]: this takes `annals::Blob`, or an `Option` of it, and not `&[u8]`
annals::schema!("blobs.schema");
use blobs::file;

fn main() -> annals::Result<()> {
    let db = blobs::Database::open("a.annals")?;
    db.write(|tx| Ok(tx.insert(file::New { name: "hello.txt", content: Some(&b"hello"[..]) })?))?;
    db.write(|tx| {
        tx.edit(file::Id::from_u64(0))?.set_content(&b"hello"[..])?;
        Ok(())
    })
}
