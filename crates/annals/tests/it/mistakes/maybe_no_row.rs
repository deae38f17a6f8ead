//! A row is used that may not be there.
//~ error[E0599]: no method named `name` found for enum `Option<T>`
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    let now = db.read();
    assert_eq!(now.city().get(tutorial::city::Id::from_u64(0))?.name(), "Lille");
    Ok(())
}
