//! Tokens in a file beside the database.

use std::str::FromStr as _;

use annals::{Options, Timestamp};
use annals_server::{NewToken, Role, Server, Tokens};
use reqwest::blocking::Client;

use crate::running::Running;

#[test]
fn tokens_are_kept_as_hashes_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    Options::new().open(&path).unwrap().close().unwrap();
    let tokens = Tokens::of(&path).unwrap();
    assert_eq!(tokens.list().unwrap(), []);
    let until = Timestamp::from_str("2030-01-01T00:00:00Z").unwrap();
    let (reader, admin) =
        (NewToken::random(Role::Read, Some(until)), NewToken::random(Role::Admin, None));
    tokens.add(&reader.stored).unwrap();
    tokens.add(&admin.stored).unwrap();
    assert_eq!(tokens.list().unwrap(), [reader.stored.clone(), admin.stored.clone()]);
    let file = std::fs::read_to_string(tokens.path()).unwrap();
    assert!(!file.contains(&reader.token) && !file.contains(&admin.token));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(tokens.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    let role = |token: &NewToken, text: &str, time| token.stored.role_of(text, Timestamp(time));
    assert_eq!(role(&reader, &reader.token, until.0 - 1), Some(Role::Read));
    assert_eq!(role(&reader, &reader.token, until.0), None, "it has ended");
    assert_eq!(role(&admin, &admin.token, i64::MAX), Some(Role::Admin));
    assert_eq!(role(&admin, &reader.token, 0), None);

    assert!(tokens.revoke(&reader.stored.id).unwrap());
    assert!(!tokens.revoke(&reader.stored.id).unwrap());
    assert_eq!(tokens.list().unwrap(), [admin.stored]);
}

#[test]
fn a_damaged_line_gives_no_right_and_takes_none_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = Options::new().open(&path).unwrap();
    let tokens = || Tokens::of(&path).unwrap();
    let [first, damaged, last] = [Role::Read, Role::Write, Role::Read].map(|role| {
        let new = NewToken::random(role, None);
        tokens().add(&new.stored).unwrap();
        new.token
    });
    let server = Server::new().database_with("library", database, tokens()).unwrap();
    let running = Running::start(server);
    let status = |token: &str| {
        let request = Client::new().get(running.of("library")).bearer_auth(token);
        request.send().unwrap().status().as_u16()
    };
    assert_eq!([&first, &damaged, &last].map(|it| status(it)), [200; 3]);
    let file = std::fs::read_to_string(tokens().path()).unwrap();
    let lines: Vec<&str> = file.lines().collect();
    let changes: [(&str, &str); 4] = [
        ("{\"id\"", "{\"id"),
        ("\"write\"", "\"writer\""),
        ("null", "\"tomorrow\""),
        ("\"hash\":\"", "\"hash\":\"!"),
    ];
    for (from, to) in changes {
        let wrong = lines[1].replace(from, to);
        assert_ne!(wrong, lines[1]);
        std::fs::write(tokens().path(), format!("{}\n{wrong}\n{}\n", lines[0], lines[2])).unwrap();
        // What was read is believed for a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!([&first, &damaged, &last].map(|it| status(it)), [200, 401, 200], "{wrong}");
        let error = tokens().list().unwrap_err().to_string();
        assert!(error.contains("line 2: isn't a token"), "{error}");
    }
}
