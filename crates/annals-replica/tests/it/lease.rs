//! A lease: one replica's transactions alone.

use std::sync::Arc;
use std::time::Duration;

use annals::{ErrorKind, Options};
use annals_replica::{Connection, Local, Patience, Replica};

use crate::offline::{create, insert_item, names};

#[test]
fn others_are_refused_until_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Options::new().open(folder.path().join("origin")).expect("a database");
    origin.write(create).expect("a first transaction");
    let connection: Arc<dyn Connection> = Arc::new(Local::new(origin.clone()));
    let replica = |name: &str, deadline| {
        let patience = Patience { deadline, ..Patience::default() };
        let path = folder.path().join(name);
        Replica::connect_with(Arc::clone(&connection), path, &Options::new(), patience)
    };
    let one = replica("one", Duration::from_secs(30)).expect("a replica");
    let hasty = replica("hasty", Duration::ZERO).expect("a replica");
    let patient = replica("patient", Duration::from_secs(30)).expect("a replica");

    let mut lease = one.lock_pull(Duration::from_secs(3600)).expect("a lease");
    let refused = hasty.transaction(|tx| insert_item(tx, "hasty", 1)).expect_err("a lease");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains(&lease.until().to_string()), "{refused}");
    let refused = hasty.lock_pull(Duration::from_secs(1)).expect_err("a lease");
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let offline = hasty.offline().expect("an offline journal");
    offline.write(|tx| insert_item(tx, "offline", 1)).expect("a commit");
    offline.close().expect("closing");
    assert_eq!(hasty.push().expect_err("a lease").kind(), ErrorKind::Conflict);
    let before = lease.until();
    lease.extend(Duration::from_secs(1)).expect("an extension");
    assert!(lease.until() < before, "it lasts a second from now on");
    lease.transaction(|tx| insert_item(tx, "one", 1)).expect("a transaction");
    let (_, accepted) = lease.push_unlock(|tx| insert_item(tx, "two", 1)).expect("a transaction");
    assert_eq!(accepted.runs, 1);
    hasty.rebase().expect("the lease was given back");

    // One that isn't given back ends by itself.
    let lost = one.lock_pull(Duration::from_millis(300)).expect("a lease");
    std::mem::forget(lost);
    let (_, accepted) = patient.transaction(|tx| insert_item(tx, "patient", 1)).expect("at last");
    assert!(accepted.runs > 1);
    assert_eq!(names(&origin.read()), ["one", "two", "offline", "patient"]);
}
