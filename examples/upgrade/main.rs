//! A program that grows: three versions of its schema, and the files that each of them meets.
//! `cargo run --release --example upgrade`
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

use annals::Result;

annals::schema!("upgrade/version_1.schema");
annals::schema!("upgrade/version_2.schema");
annals::schema!("upgrade/version_3.schema");

use version_3::custom::set_default_language::{Transaction, language};

/// Sets everybody's language, when a file comes to `custom set_default_language`. It sees the tables
/// as they are at that line of the schema: the field is called `name`, though version 3 renames it
/// after that line. So this function never has to be touched again.
fn set_default_language(tx: &mut Transaction<'_, '_>) -> Result<()> {
    let english = tx.insert(language::New { name: "English" })?;
    for id in tx.person().ids()? {
        println!("{} speaks English", tx.person().require(id)?.name());
        tx.edit(id)?.set_language(english)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("people.annals");

    let db = version_1::Database::open(&path)?; // the first release
    db.write(|tx| {
        tx.insert(version_1::person::New { name: "Ada" })?;
        Ok(tx.insert(version_1::person::New { name: "Grace" })?)
    })?;
    db.close()?;

    // Two releases later: both upgrades in one transaction. Without this function in `Customs` the
    // program wouldn't compile.
    let customs = version_3::Customs { set_default_language: &mut set_default_language };
    let db = version_3::Database::open(&path, customs)?;
    let now = db.read();
    for person in now.person().by_full_name() {
        let person = person?;
        let language = now.language().get(person.language())?;
        let language = language.as_ref().map_or("nothing", |language| language.name());
        println!("{}, {} ({language})", person.greeting(), person.full_name());
    }
    db.close()?;

    // Somebody still has the release before: it can't write a newer file, but read it.
    let customs = version_2::Customs { set_default_language: &mut |_| Ok(()) };
    if let Err(error) = version_2::Database::open(&path, customs) {
        println!(
            "refused: {}",
            error.to_string().replace(&*path.to_string_lossy(), "people.annals")
        );
    }
    let reader = version_2::Database::open_read_only(&path)?;
    for person in reader.read().person() {
        println!("read: {}", person?.name());
    }
    Ok(())
}
