//! Bytes of any length: they go from a file into the journal, stay there, and are read on demand.
//! `cargo run --release --example blobs`
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("blobs.schema");

use blobs::file;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let big = folder.path().join("big.txt");
    let lines: String = (0..100_000).map(|line| format!("line {line:06}\n")).collect();
    std::fs::write(&big, lines)?;

    let db = blobs::Database::open(folder.path().join("blobs.annals"))?;
    db.write(|tx| {
        let content = tx.write_blob(&b"hello, world"[..])?; // anything that can be read
        tx.insert(file::New { name: "hello.txt", content: Some(content) })?;
        tx.insert(file::New { name: "nothing.txt", content: None })?; // null, not even an empty one
        Ok(())
    })?;
    db.write(|tx| {
        let content = tx.write_blob(open(&big)?)?; // 64 KiB of memory, whatever its length; `?` takes any error
        Ok(tx.insert(file::New { name: "big.txt", content: Some(content) })?)
    })?;

    let now = db.read();
    for file in now.file().by_name() {
        let file = file?;
        match file.content() {
            Some(content) => println!("{}: {} bytes", file.name(), now.read_blob(content)?.len()),
            None => println!("{}: null", file.name()),
        }
    }
    let big = now.file().by_name().require("big.txt")?.content();
    let mut blob = now.read_blob(big.ok_or("it was inserted above")?)?; // is `Read` and `Seek` too
    let mut line = [0; 11];
    blob.read_at(50_000 * 12, &mut line)?; // reads, and verifies, one piece of the journal
    println!("somewhere in it: {}", String::from_utf8_lossy(&line));
    db.close()?;
    Ok(())
}

fn open(path: &std::path::Path) -> std::io::Result<impl std::io::Read> {
    #[expect(clippy::disallowed_methods, reason = "the program's own file, not the database's")]
    std::fs::File::open(path)
}
