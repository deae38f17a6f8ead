//! The tutorial of the README, as a program: `cargo run --release --example tutorial`.
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("tutorial.schema"); // makes the module `tutorial`

use tutorial::{city, person};

fn main() -> annals::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;

    db.write(|tx| {
        let lille = tx.insert(city::New { name: "Lille" })?;
        let remi = person::New { first_name: "Rémi", last_name: "Coulom", home: lille.into() };
        let remi = tx.insert(remi)?;
        tx.edit(remi)?.set_last_name("Coulom-Martin")?;
        let anne = person::New { first_name: "Anne", last_name: "Dupont", ..Default::default() };
        tx.insert(anne)?; // no home yet: null
        tx.comment("first residents")?; // for whoever reads the history
        Ok(())
    })?; // durable here; an error would have rolled everything back

    let before = db.read(); // a snapshot: it stays as it is, and never waits
    db.write(|tx| Ok(tx.insert(city::New { name: "Arras" })?))?;
    let now = db.read();
    println!("{} city before, {} now", before.city().len(), now.city().len());

    for city in now.city().by_name() {
        println!("{}", city?.name());
    }
    for person in now.person().by_name().prefix("Coulom") {
        let person = person?;
        let home = now.city().get(person.home())?; // follows the reference
        let home = home.as_ref().map_or("nowhere", |city| city.name());
        println!("{} {} lives in {home}", person.first_name(), person.last_name());
    }

    if let Err(error) = db.write(|tx| Ok(tx.insert(city::New { name: "Lille" })?)) {
        println!("refused: {error}"); // there can be only one
    }
    db.close()
}
