//! A row that is read while its transaction writes.
//~ error[E0502]: cannot borrow `*tx` as mutable because it is also borrowed as immutable
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.write(|tx| {
        for city in tx.city() {
            let city = city?;
            tx.edit(city.id())?.set_name("elsewhere")?;
        }
        Ok(())
    })
}
