//! A function over tables gets a past state that no variable keeps.
//~ error[E0308]: `?` operator has incompatible types
annals::schema!("tutorial.schema");

fn cities(state: &tutorial::Tables<impl annals::typed::Viewed>) -> u64 {
    state.city().len()
}

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    let then = db.at(annals::Txid(1))?;
    assert_eq!(cities(&then), cities(&db.read()));
    assert_eq!(cities(&db.at(annals::Txid(2))?), 1);
    Ok(())
}
