//! The answers to wrong requests, by their status, and what they say.

use annals::{Command, Database, Options};
use annals_server::{NewToken, Role, Server, Tokens};
use reqwest::blocking::{Client, RequestBuilder};

use crate::running::Running;

fn create(database: &Database) {
    database
        .write(|tx| tx.apply_command(&Command::CreateTable { name: "secret_table".to_owned() }))
        .unwrap();
}

fn cursor(database: &Database) -> String {
    annals::Cursor::from(database.read().point()).to_string()
}

/// Sends a request; returns the status and the body.
fn ask(request: RequestBuilder) -> (u16, String) {
    let response = request.send().unwrap();
    (response.status().as_u16(), response.text().unwrap())
}

fn client() -> Client {
    Client::new()
}

#[test]
fn pushes_are_judged_in_the_order_of_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = Options::new().open(&path).unwrap();
    create(&database);
    let tokens = || Tokens::of(&path).unwrap();
    let token = |role| {
        let new = NewToken::random(role, None);
        tokens().add(&new.stored).unwrap();
        new.token
    };
    let (reader, writer) = (token(Role::Read), token(Role::Write));
    let limits = annals_server::Limits { push: 1000, ..annals_server::Limits::default() };
    let server = Server::new().database_with("library", database.clone(), tokens()).unwrap();
    let running = Running::start(server.limits(limits));
    let (here, end) = (running.of("library"), cursor(&database));
    let http = client();
    let push = |url: &str, token: &str| http.post(format!("{url}/frames")).bearer_auth(token);

    // No token says nothing of what is there.
    let nothing = ask(http.get(&here));
    assert_eq!((nothing.0, nothing.clone()), (401, ask(http.get(running.of("other")))));
    assert_eq!(ask(push(&here, "annals_wrong")).0, 401);
    let wrong = ask(push(&running.of("other"), &writer));
    assert_eq!(wrong.0, 401, "{wrong:?}");
    for (status, text) in [nothing, wrong, ask(push(&here, &reader))] {
        assert!(!text.contains("secret") && !text.contains("annals/"), "{status}: {text}");
    }
    assert_eq!(ask(push(&here, &reader)).0, 403);
    assert_eq!(ask(push(&here, &writer)).0, 428);
    let with = |cursor: &str| push(&here, &writer).header("If-Match", format!("\"{cursor}\""));
    assert_eq!(ask(with("17")).0, 400);
    assert_eq!(ask(with(&end).body(vec![0; 1001])).0, 413);
    let empty = ask(with(&end));
    assert_eq!(empty.0, 422, "{empty:?}");
    let garbage = ask(with(&end).body("garbage"));
    assert_eq!(garbage.0, 422);
    assert!(garbage.1.contains("isn't whole frames"), "{garbage:?}");
    // The history here isn't that of the cursor; but garbage is refused before that is asked.
    assert_eq!(ask(with("1:00c0ffee00c0ffee").body("garbage")).0, 422);
    assert_eq!(cursor(&database), end, "nothing was changed");

    assert_eq!(ask(http.get(&here).bearer_auth(&reader)).0, 200);
    let frames = |rest: &str| ask(http.get(format!("{here}/frames{rest}")).bearer_auth(&reader));
    assert_eq!(frames("?after=1").0, 400);
    assert_eq!(frames("?after=1:00c0ffee00c0ffee").0, 409);
    assert_eq!(ask(http.get(format!("{here}/nothing")).bearer_auth(&reader)).0, 404);
}

#[test]
fn other_hosts_and_pages_of_other_origins_are_refused() {
    let database = Database::in_memory().unwrap();
    let server = Server::new().database("memory", database).unwrap().open_to_all();
    let running = Running::start(server.host("db.example.org").origin("https://app.example.org"));
    let here = running.of("memory");
    let http = client();
    let as_host = |host: &str| ask(http.get(&here).header("Host", host)).0;
    assert_eq!(
        [as_host("localhost:80"), as_host("127.0.0.1"), as_host("db.example.org")],
        [200; 3]
    );
    assert_eq!([as_host("evil.example.org"), as_host("localhost.evil.org:80")], [403; 2]);
    let from = |origin: &str| ask(http.get(&here).header("Origin", origin)).0;
    assert_eq!([from(&running.url), from("https://app.example.org")], [200; 2]);
    assert_eq!([from("https://evil.example.org"), from("null")], [403; 2]);
    // The right host alone doesn't do.
    let other_schemes = ["foo", "file", "ws", "chrome-extension"];
    for origin in other_schemes.map(|scheme| running.url.replacen("http", scheme, 1)) {
        assert_eq!(from(&origin), 403, "{origin}");
    }
}
