//! An id of another table in a reference.
//~ error[E0277]: this field takes a `annals::typed::Id<city::Kind>`, an `Option` of it, or `None`
//~ a reference takes the id of a row of the table that it leads to, and of no other
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| {
        let remi = tx.person().insert("Rémi", "Coulom", None)?;
        tx.person().insert("Anne", "Martin", remi)?;
        Ok(())
    })
}
