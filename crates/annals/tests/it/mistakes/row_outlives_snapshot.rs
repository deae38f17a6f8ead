//! A row that is used when its snapshot is gone.
//~ error[E0597]: `now` does not live long enough
annals::schema!("tutorial.schema");

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    let city = {
        let now = db.read();
        now.city().require(tutorial::city::Id::from_u64(0))?
    };
    assert_eq!(city.name(), "Lille");
    Ok(())
}
