//! The feature `tokio`: writing from async programs, and subscriptions as streams.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use annals::{Abort, ErrorKind, Options};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::generated_for_tests::tutorial::{self, city};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

fn insert(
    db: &tutorial::Database,
    name: &str,
) -> impl Future<Output = annals::Result<city::Id>> + Send + use<> {
    let (db, name) = (db.clone(), name.to_owned());
    async move { db.write_async(move |tx| Ok(tx.insert(city::New { name: &name })?)).await }
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn tasks_write_as_threads_do() {
    runtime().block_on(async {
        let db = tutorial::Database::in_memory().unwrap();
        let tasks: Vec<_> =
            (0..20).map(|number| tokio::spawn(insert(&db, &format!("city {number}")))).collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        assert_eq!(db.read().city().len(), 20);
        assert_eq!(insert(&db, "city 3").await.unwrap_err().kind(), ErrorKind::Unique);
        let own = db.write_async(|_| Err::<(), _>(Abort::new("no"))).await.unwrap_err();
        assert_eq!(own.kind(), ErrorKind::Aborted);
        let panicking = db.clone();
        let panicking =
            async move { panicking.write_async(|_| -> Result<(), Abort> { panic!("mine") }).await };
        let panic = tokio::spawn(panicking).await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref(), Some(&"mine"));
        insert(&db, "after the panic").await.unwrap();
        db.clone().close().unwrap();
        assert_eq!(insert(&db, "late").await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_write_whose_future_is_dropped_is_committed_all_the_same() {
    runtime().block_on(async {
        let db = tutorial::Database::in_memory().unwrap();
        drop(insert(&db, "never begun"));
        let (begun, wait_begun) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let future = db.write_async(move |tx| {
            begun.send(())?;
            wait.recv()?;
            Ok(tx.insert(city::New { name: "Lille" })?)
        });
        let mut feed = db.subscribe().into_stream();
        assert!(timeout(Duration::from_millis(1), future).await.is_err(), "it waits");
        wait_begun.recv_timeout(LONG).unwrap();
        go_on.send(()).unwrap();
        let changed = timeout(LONG, feed.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(changed.changes.len(), 1);
        let now = db.read();
        assert!(now.city().len() == 1 && now.city().by_name().get("Lille").unwrap().is_some());
    });
}

#[test]
fn outside_of_a_runtime_there_is_an_error() {
    let db = tutorial::Database::in_memory().unwrap();
    let written = insert(&db, "Lille").now_or_never().unwrap();
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Invalid);
    let mut feed = db.subscribe().into_stream();
    let read = feed.next().now_or_never().unwrap().unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(feed.next().now_or_never().unwrap().is_none(), "it is over");
}

#[test]
fn a_stream_has_each_commit_once_and_in_order() {
    runtime().block_on(async {
        let db = tutorial::Database::in_memory().unwrap();
        let from = db.read().txid();
        let mut feeds: Vec<_> = (0..3).map(|_| db.subscribe().into_stream()).collect();
        let writer = tokio::spawn({
            let db = db.clone();
            async move {
                for number in 0..200 {
                    insert(&db, &format!("city {number}")).await.unwrap();
                    if number % 50 == 0 {
                        sleep(Duration::from_millis(2)).await; // so that they wait
                    }
                }
                db.close().unwrap();
            }
        });
        let cancelled = feeds.pop().unwrap();
        let readers = feeds.into_iter().map(|mut feed| {
            tokio::spawn(async move {
                let mut seen = Vec::new();
                loop {
                    // Futures that are dropped while they wait lose nothing.
                    match timeout(Duration::from_micros(300), feed.next()).await {
                        Err(_) => {}
                        Ok(Some(changed)) => seen.push(changed.unwrap().txid),
                        Ok(None) => return seen,
                    }
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        drop(cancelled);
        writer.await.unwrap();
        let expected: Vec<_> = (1..=200).map(|number| from + number).collect();
        for reader in readers {
            assert_eq!(timeout(LONG, reader).await.unwrap().unwrap(), expected);
        }
    });
}

#[test]
fn a_stream_of_a_shared_file_has_the_commits_of_others() {
    runtime().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db.annals");
        let options = Options::new().shared(true);
        let db = tutorial::Database::open_with(&path, &options).unwrap();
        let mut feed = db.subscribe().into_stream();
        let reader = tutorial::Database::open_read_only(&path).unwrap();
        let mut read = reader.subscribe().into_stream();
        let other = tutorial::Database::open_with(&path, &options).unwrap();
        for number in 0..3 {
            insert(&other, &format!("city {number}")).await.unwrap();
            for feed in [&mut feed, &mut read] {
                let changed = timeout(LONG, feed.next()).await.unwrap().unwrap().unwrap();
                assert_eq!(changed.txid, other.read().txid());
            }
        }
        drop(reader);
        assert!(timeout(LONG, read.next()).await.unwrap().is_none());
    });
}
