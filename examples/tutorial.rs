//! The tutorial of the README, as a program: `cargo run --release --example tutorial`.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let path = std::env::temp_dir().join(format!("tutorial-{}.annals", std::process::id()));
    let db = tutorial::Database::open(&path)?;

    let lille = db.write(|tx| -> annals::Result<_> {
        let lille = tx.city().insert("Lille")?;
        let remi = tx.person().insert("Rémi", "Coulom", lille)?;
        tx.person().set_last_name(remi, "Coulom-Martin")?;
        tx.comment("first residents")?;
        Ok(lille)
    })?; // durable here; an error would have rolled everything back

    let refused = db.write(|tx| tx.city().insert("Lille"));
    if let Err(error) = refused {
        println!("refused: {error}");
    }

    let now = db.read(); // a snapshot: it stays as it is, and never waits
    println!("{}", now.city().get(lille)?.name());
    for person in now.person_by_name().prefix("Coulom") {
        let person = person?;
        println!("{} {}", person.first_name(), person.last_name());
    }
    db.close()?;
    std::fs::remove_file(&path)
        .map_err(|error| annals::Error::io(format!("{}: can't remove it", path.display()), error))
}
