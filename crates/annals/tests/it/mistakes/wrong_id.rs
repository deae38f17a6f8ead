//! An id of another table in a reference.
//~ expected `city::Kind`, found `person::Kind`
//~ error[E0277]: this takes `annals::typed::Id<city::Kind>`, or an `Option` of it, and not `annals::typed::Id<person::Kind>`
annals::schema!("tutorial.schema");
use tutorial::person;

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| {
        let remi = tx.insert(person::New { first_name: "Rémi", ..Default::default() })?;
        tx.insert(person::New { first_name: "Anne", home: Some(remi), ..Default::default() })?;
        tx.edit(remi)?.set_home(remi)?;
        Ok(())
    })
}
