//! The queue, as its clients see it.

use std::time::Duration;

use annals::ErrorKind;

use crate::db::Database;
use crate::jobs::{Queue, TooLate};

const LONG: Duration = Duration::from_secs(3600);

fn queue() -> annals::Result<Queue> {
    Ok(Queue::new(Database::in_memory()?))
}

fn claim(queue: &Queue) -> Option<(u64, u32)> {
    queue.claim("w", LONG).unwrap().map(|claim| (claim.id, claim.attempt))
}

#[test]
fn the_highest_priority_comes_first_and_then_the_oldest() -> annals::Result<()> {
    let queue = queue()?;
    let ids = [1, 5, -3, 5, 1].map(|priority| queue.add(priority, "{}").unwrap());
    let claimed: Vec<_> = std::iter::from_fn(|| claim(&queue)).map(|(id, _)| id).collect();
    assert_eq!(claimed, [1, 3, 0, 4, 2].map(|place: usize| ids[place]));
    Ok(())
}

#[test]
fn a_job_that_fails_is_tried_three_times() -> annals::Result<()> {
    let queue = queue()?;
    let id = queue.add(0, r#"{"to": "Ada"}"#)?;
    for attempt in 1..=3 {
        assert_eq!(claim(&queue), Some((id, attempt)));
        queue.fail(id, attempt, "no paper")?;
    }
    assert_eq!(claim(&queue), None);
    assert_eq!(queue.stats()["failed"], 1);
    let history = queue.history(id)?;
    let states: Vec<_> = history.iter().map(|version| version.state.as_str()).collect();
    assert_eq!(states, ["ready", "running", "ready", "running", "ready", "running", "failed"]);
    assert_eq!(history[6].reason.as_deref(), Some("no paper"));
    Ok(())
}

#[test]
fn an_expired_lease_gives_the_job_to_another_worker() -> annals::Result<()> {
    let queue = queue()?;
    let id = queue.add(0, "1")?;
    assert!(queue.claim("slow", Duration::ZERO)?.is_some());
    assert_eq!(claim(&queue), Some((id, 2)));
    let late = queue.finish(id, 1).unwrap_err();
    assert!(late.into_program::<TooLate>().is_ok());
    queue.finish(id, 2)?;
    assert_eq!(queue.stats()["done"], 1);
    Ok(())
}

#[test]
fn what_cannot_be_is_refused() -> annals::Result<()> {
    let queue = queue()?;
    assert_eq!(queue.finish(7, 1).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(queue.history(7).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(queue.add(0, "not json").is_err());
    assert_eq!(claim(&queue), None);
    Ok(())
}

#[test]
fn workers_never_share_a_job_and_the_file_keeps_all() -> annals::Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.annals");
    let queue = Queue::new(Database::open(&path)?);
    for _ in 0..40 {
        queue.add(0, "null")?;
    }
    let work = || std::iter::from_fn(|| claim(&queue)).map(|(id, _)| id).collect::<Vec<_>>();
    let mut claimed = std::thread::scope(|scope| {
        let workers = [(); 4].map(|()| scope.spawn(work));
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    claimed.sort_unstable();
    assert_eq!(claimed, (0..40).collect::<Vec<_>>());
    drop(queue);
    assert_eq!(Queue::new(Database::open(&path)?).stats()["running"], 40);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() -> crate::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, crate::http::router(queue()?)).into_future());
    let ask = move |method: &str, path: &str, body: &str| {
        let body = serde_json::from_str(body).unwrap();
        let (status, answer) = crate::client::request(server, method, path, &body).unwrap();
        (status, answer.to_string())
    };
    tokio::task::spawn_blocking(move || {
        let claim = r#"{"worker": "w1", "lease_ms": 30000}"#;
        assert_eq!(ask("POST", "/claim", claim), (200, "null".to_owned()));
        assert_eq!(ask("POST", "/jobs", r#"{"payload": [1,  2]}"#), (200, "0".to_owned()));
        let job = r#"{"id":0,"attempt":1,"payload":[1,2]}"#;
        assert_eq!(ask("POST", "/claim", claim), (200, job.to_owned()));
        assert_eq!(ask("POST", "/jobs/0/finish", r#"{"attempt": 2}"#).0, 409);
        assert_eq!(ask("POST", "/jobs/0/finish", r#"{"attempt": 1}"#).0, 200);
        assert_eq!(ask("POST", "/jobs/1/finish", r#"{"attempt": 1}"#).0, 404);
        let counts = r#"{"done":1,"failed":0,"ready":0,"running":0}"#;
        assert_eq!(ask("GET", "/stats", "null"), (200, counts.to_owned()));
        assert!(ask("GET", "/jobs/0/history", "null").1.contains(r#""state":"running""#));
    })
    .await?;
    Ok(())
}
