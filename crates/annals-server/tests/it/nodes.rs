//! Nodes and followers whose other side is away, has another history, or is always faster: what they answer, and whether
//! they say that they are ready.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::{Command, Cursor, Database, Error, ErrorKind, Options, Result, TableNumber, Txid};
use annals_replica::{
    Connection, Description, Granted, Local, Node, Patience, Pulled, Pushed, Replica,
};
use annals_server::Server;
use annals_storage::Spool;
use reqwest::blocking::{Client, Response};

use crate::running::Running;

/// What the other side does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Fine,
    Away,
    /// Others come first, again and again.
    Taken,
    /// It takes what it gets, and its answers are lost.
    Silent,
    /// It has another history.
    Other,
}

#[derive(Debug)]
struct Moody {
    local: Local,
    /// The other side's database.
    there: Database,
    mood: Mutex<Mood>,
}

impl Moody {
    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn ask(&self) -> Result<()> {
        match self.mood() {
            Mood::Fine | Mood::Taken => Ok(()),
            Mood::Away | Mood::Silent => Err(Error::new(ErrorKind::Unreachable, "no answer")),
            Mood::Other => Err(Error::new(ErrorKind::Diverged, "the histories differ")),
        }
    }
}

impl Connection for Moody {
    fn name(&self) -> String {
        "the other side".to_owned()
    }

    fn describe(&self) -> Result<Description> {
        self.ask()?;
        self.local.describe()
    }

    fn pull(&self, after: Option<Cursor>, wait: Duration, into: &mut Spool) -> Result<Pulled> {
        self.ask()?;
        self.local.pull(after, wait, into)
    }

    fn push(&self, from: Cursor, frames: &Spool, lease: Option<u64>) -> Result<Pushed> {
        match self.mood() {
            Mood::Taken => {
                self.there.write(|tx| tx.comment("another came first"))?;
                Ok(Pushed::Conflict(None))
            }
            Mood::Silent => Ok(Pushed::Unknown(Error::new(ErrorKind::Unreachable, "no answer"))),
            _ => {
                self.ask()?;
                self.local.push(from, frames, lease)
            }
        }
    }

    fn lock(&self, lasting: Duration, ticket: Option<u64>) -> Result<Granted> {
        self.local.lock(lasting, ticket)
    }

    fn unlock(&self, ticket: u64) -> Result<()> {
        self.local.unlock(ticket)
    }

    fn chains(&self, txids: &[Txid]) -> Result<Vec<Option<u64>>> {
        self.ask()?;
        self.local.chains(txids)
    }
}

/// A replica in a folder, and what it follows.
fn replica(folder: &std::path::Path) -> (Arc<Moody>, Replica) {
    let database = Database::in_memory().unwrap();
    database
        .write(|tx| tx.apply_command(&Command::CreateTable { name: "item".to_owned() }))
        .unwrap();
    let (there, mood) = (database.clone(), Mutex::new(Mood::Fine));
    let moody = Arc::new(Moody { local: Local::new(database), there, mood });
    let patience =
        Patience { deadline: Duration::from_millis(200), pause: Duration::from_millis(1) };
    let path = folder.join("copy.annals");
    let connection = Arc::clone(&moody);
    let replica = Replica::connect_with(connection, path, &Options::new(), patience).unwrap();
    (moody, replica)
}

fn ready(running: &Running) -> (u16, String) {
    let response = Client::new().get(format!("{}/ready", running.url)).send().unwrap();
    (response.status().as_u16(), response.text().unwrap())
}

#[test]
fn a_node_says_what_a_client_can_do_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let (moody, replica) = replica(folder.path());
    let node = Arc::new(Node::new(replica));
    let server = Server::new().node("items", Arc::clone(&node), None).unwrap().open_to_all();
    let running = Running::start(server);
    let insert = || -> Response {
        let request = Client::new().post(format!("{}/transactions", running.of("items")));
        let request = request.header("Content-Type", "application/json");
        request.body(r#"{"changes":[{"op":"insert","table":"item"}]}"#).send().unwrap()
    };
    let mut rows = 0;
    for (mood, status, error, may_retry) in [
        (Mood::Fine, 200, None, false),
        (Mood::Away, 503, Some("unreachable"), true),
        (Mood::Taken, 503, Some("busy"), true),
        (Mood::Silent, 503, Some("unknown"), false),
        (Mood::Fine, 200, None, false),
    ] {
        moody.set(mood);
        let answer = insert();
        assert_eq!(answer.status().as_u16(), status, "{mood:?}");
        assert_eq!(answer.headers().contains_key("Retry-After"), may_retry, "{mood:?}");
        let body: serde_json::Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        assert_eq!(body.get("error").and_then(|it| it.as_str()), error, "{mood:?}: {body}");
        rows += u64::from(status == 200);
        moody.set(Mood::Fine);
        node.replica().pull().unwrap();
        let now = node.replica().read();
        assert_eq!(now.table(TableNumber(0)).unwrap().len(), rows, "{mood:?}");
    }
}

#[test]
fn who_can_not_follow_says_so_and_still_answers() {
    for is_node in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (moody, replica) = replica(folder.path());
        let server = Server::new().open_to_all();
        let (server, pull): (_, Box<dyn Fn() -> Result<u64>>) = match is_node {
            true => {
                let node = Arc::new(Node::new(replica));
                let server = server.node("items", Arc::clone(&node), None).unwrap();
                (server, Box::new(move || node.replica().pull()))
            }
            false => {
                let replica = Arc::new(replica);
                let server = server.follower("items", Arc::clone(&replica), None).unwrap();
                (server, Box::new(move || replica.pull()))
            }
        };
        let running = Running::start(server);
        assert_eq!(ready(&running).0, 200);
        for (mood, reason) in [(Mood::Other, "the histories differ"), (Mood::Away, "no answer")] {
            moody.set(mood);
            pull().unwrap_err();
            let (status, said) = ready(&running);
            assert_eq!(status, 503, "{mood:?}: {said}");
            assert!(said.contains("not_ready") && said.contains(reason), "{mood:?}: {said}");
            assert!(!said.contains("items"), "{said}");
            let read = Client::new().get(running.of("items")).send().unwrap();
            assert_eq!(read.status().as_u16(), 200, "{mood:?}: what is here can be read");
            moody.set(Mood::Fine);
            pull().unwrap();
            assert_eq!(ready(&running).0, 200, "{mood:?}");
        }
    }
}
