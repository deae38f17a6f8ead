//! Tables that aren't there, in a snapshot and in a transaction.
//~ no method named `cty` found for struct `annals::typed::Snapshot
//~ there is a method `city` with a similar name
//~ no method named `persn` found for mutable reference `&mut annals::typed::Transaction
//~ there is a method `person` with a similar name
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| tx.persn().len())?;
    assert_eq!(db.read().cty().len(), 0);
    Ok(())
}
