//! Replicas with types.

use std::sync::Arc;

use annals::{Command, Database, ErrorKind, Options, TableNumber, Type};
use annals_replica::{Connection, Local, TypedReplica};

annals::schema!("../annals/tutorial.schema");
use tutorial::city;

fn setup() -> (tempfile::TempDir, Database, TypedReplica<tutorial::Schema>) {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Options::new().open(folder.path().join("origin")).expect("a database");
    origin.write(|tx| tx.comment("begun")).expect("a first transaction");
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let replica = TypedReplica::connect(connection, folder.path().join("copy"));
    let replica = replica.expect("a replica");
    (folder, origin, replica)
}

fn add_field(table: TableNumber, name: &str) -> Command {
    let (name, ty) = (name.to_owned(), Type::Int64);
    Command::AddField { table, name, ty, nullable: true, default: None }
}

#[test]
fn changes_are_made_offline_with_types() {
    let (_folder, origin, replica) = setup();
    let (lille, _) = replica
        .transaction(|tx| Ok(tx.insert(city::New { name: "Lille" })?))
        .expect("a transaction");
    let offline = replica.offline().expect("an offline journal");
    let paris = offline
        .write(|tx| {
            tx.edit(lille)?.set_name("Lyon")?;
            Ok(tx.insert(city::New { name: "Paris" })?)
        })
        .expect("a commit");
    assert_eq!(offline.read().city().require(paris).expect("a row").name(), "Paris");
    offline.close().expect("closing");
    replica.transaction(|tx| Ok(tx.insert(city::New { name: "Tokyo" })?)).expect("a transaction");
    assert_eq!(replica.push().expect_err("others came first").kind(), ErrorKind::Conflict);
    let rebased = replica.rebase().expect("a rebase");
    assert_eq!((rebased.transactions, rebased.renumbered.len()), (1, 1));
    let now = replica.read();
    assert_eq!(now.city().require(lille).expect("a row").name(), "Lyon");
    assert_eq!(now.city().len(), 3);
    let lease = replica.lock_pull(std::time::Duration::from_secs(5)).expect("a lease");
    lease.push_unlock(|tx| Ok(tx.insert(city::New { name: "Rome" })?)).expect("a transaction");
    assert_eq!(origin.read().txid(), replica.cursor().txid);
}

#[test]
fn a_newer_schema_is_read_and_not_written() {
    let (_folder, origin, replica) = setup();
    let (lille, _) = replica
        .transaction(|tx| Ok(tx.insert(city::New { name: "Lille" })?))
        .expect("a transaction");
    let table = origin.read().schema().tables()[0].number;
    origin.write(|tx| tx.apply_command(&add_field(table, "population"))).expect("a newer schema");
    replica.pull().expect("it can be read");
    assert_eq!(replica.read().city().require(lille).expect("a row").name(), "Lille");
    let insert = || replica.transaction(|tx| Ok(tx.insert(city::New { name: "Paris" })?));
    let refused = insert().expect_err("the program doesn't know the field");
    assert_eq!(refused.kind(), ErrorKind::SchemaMismatch, "{refused}");
    assert_eq!(replica.offline().expect_err("it doesn't").kind(), ErrorKind::SchemaMismatch);
    assert_eq!(origin.read().table(table).expect("the table").len(), 1);

    // Where something is missing that the program needs, it goes on with the last state that has it.
    let field = origin.read().schema().tables()[0].fields[0].number;
    for index in origin.read().schema().indexes_of(&origin.read().schema().tables()[0]) {
        let index = index.number;
        origin.write(|tx| tx.apply_command(&Command::DropIndex { index })).expect("a command");
    }
    origin
        .write(|tx| tx.apply_command(&Command::DropField { table, field }))
        .expect("a field is dropped");
    let refused = replica.pull().expect_err("it can't be read");
    assert_eq!(refused.kind(), ErrorKind::SchemaMismatch, "{refused}");
    assert_eq!(replica.read().city().require(lille).expect("a row").name(), "Lille");
}
