//! Rows are written without a transaction: by a database, a snapshot, a table, a reader.
//~ error[E0277]: only a transaction writes rows; databases, snapshots and tables have no verbs
//~ write `db.write(|tx| Ok(tx.insert(city::New { .. })?))`
//~ db.insert(
//~ now.insert(
//~ now.city().insert(
//~ reader.insert(
annals::schema!("tutorial.schema");
use tutorial::city;

fn main() -> annals::Result<()> {
    let db = tutorial::Database::open("a.annals")?;
    db.insert(city::New { name: "Lille" });
    let now = db.read();
    now.insert(city::New { name: "Lille" });
    now.city().insert(city::New { name: "Lille" });
    let reader = tutorial::Database::open_read_only("a.annals")?;
    reader.insert(city::New { name: "Lille" });
    Ok(())
}
