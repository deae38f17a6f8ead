//! The tutorial of the README, as a program: `cargo run --release --example tutorial`.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("tutorial.schema"); // makes the module `tutorial`

use tutorial::{city, person};

fn main() -> annals::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;

    let remi = db.write(|tx| {
        let lille = tx.upsert(city::New { name: "Lille" })?; // found by its unique name, or inserted
        let remi = person::New { first_name: "Rémi", last_name: "Coulom", home: lille.into() };
        Ok(tx.insert(remi)?)
    })?; // durable here; an error rolls everything back
    db.write(|tx| {
        tx.edit(remi)?.set_last_name("Coulom-Martin")?;
        Ok(tx.comment("wedding")?) // for whoever reads the history
    })?;

    let now = db.read(); // a snapshot: it stays as it is, and waits for no writer
    for person in now.person().by_name().prefix("Coulom") {
        let person = person?;
        let home = now.city().get(person.home())?; // follows the reference
        let home = home.map(|city| city.name().to_owned());
        println!("{} {}, {home:?}", person.first_name(), person.last_name());
    }
    for version in db.history_of(remi)? {
        let version = version?;
        println!("{}: {:?}", version.txid, version.change.after.map(|person| person.last_name));
    }
    if let Err(error) = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?)) {
        println!("refused: {error}");
    }
    db.close()
}
