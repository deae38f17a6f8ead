//! A row of a transaction is used after a write.
//~ error[E0502]: cannot borrow `*tx` as mutable because it is also borrowed as immutable
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| {
        let city = tx.city().require(tutorial::city::Id::from_u64(0))?;
        tx.insert(tutorial::city::New { name: "elsewhere" })?;
        assert_eq!(city.name(), "Lille");
        Ok(())
    })
}
