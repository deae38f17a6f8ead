//! TLS, and what operators ask.

use annals::{Database, Options};
use annals_server::{Identity, NewToken, Role, Server, Tokens};
use reqwest::Certificate;
use reqwest::blocking::Client;

use crate::running::Running;

#[test]
fn a_server_with_a_certificate_speaks_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::new().database("memory", Database::in_memory().unwrap()).unwrap();
    let running = Running::start(server.open_to_all().tls(Identity::read(&cert, &key).unwrap()));
    let url = format!("https://localhost:{}/v1/memory", running.address.port());
    let client = |trusted: bool| {
        let root = Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
        let builder = Client::builder().http2_adaptive_window(true);
        let builder = if trusted { builder.tls_certs_only([root]) } else { builder };
        builder.build().unwrap()
    };
    let answer = client(true).get(&url).send().unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    assert!(client(false).get(&url).send().is_err(), "nobody vouches for it");
    let plain = client(true).get(url.replace("https", "http")).send();
    assert!(plain.is_err(), "it doesn't speak without TLS");

    for (cert, key) in [(&key, &cert), (&cert, &cert), (&key, &key)] {
        let error = Identity::read(cert, key).unwrap_err();
        assert!(error.to_string().contains(".pem"), "{error}");
    }
}

#[test]
fn operators_see_whether_it_lives_and_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.annals");
    let database = Options::new().open(&path).unwrap();
    database.write(|tx| tx.comment("one")).unwrap();
    let tokens = Tokens::of(&path).unwrap();
    let token = |role| {
        let new = NewToken::random(role, None);
        tokens.add(&new.stored).unwrap();
        new.token
    };
    let (reader, admin) = (token(Role::Read), token(Role::Admin));
    let server = Server::new().database_with("library", database, Tokens::of(&path).unwrap());
    let running = Running::start(server.unwrap());
    let client = Client::new();
    let get = |path: &str, token: &str| {
        let request = client.get(format!("{}{path}", running.url)).bearer_auth(token);
        let answer = request.send().unwrap();
        (answer.status().as_u16(), answer.text().unwrap())
    };
    assert_eq!(get("/health", ""), (200, "alive\n".to_owned()));
    assert_eq!(get("/ready", ""), (200, "{\"databases\":1}".to_owned()));
    assert_eq!((get("/metrics", "").0, get("/metrics", &reader).0), (401, 403));
    let (status, text) = get("/metrics", &admin);
    assert_eq!(status, 200);
    assert!(text.contains("annals_last_transaction{database=\"library\"} 1\n"), "{text}");
}

/// Each figure is described once, and each database has one of each name.
#[test]
fn figures_of_several_databases_are_told_apart() {
    let new = NewToken::random(Role::Admin, None);
    let database = || annals::Database::in_memory().unwrap();
    let server = Server::new().database("a", database()).unwrap().database("b-2", database());
    let running = Running::start(server.unwrap().session(new.stored.clone()));
    let request = reqwest::blocking::Client::new().get(format!("{}/metrics", running.url));
    let text = request.bearer_auth(&new.token).send().unwrap().text().unwrap();
    let (mut described, mut series) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(line) => described.push(line.split(' ').take(2).collect::<Vec<_>>().join(" ")),
            None => series.push(line.split(' ').next().unwrap().to_owned()),
        }
    }
    for list in [&described, &series] {
        let all: std::collections::BTreeSet<_> = list.iter().collect();
        assert_eq!(all.len(), list.len(), "{text}");
    }
    for name in ["commits_total", "last_transaction", "image_bytes"] {
        for of in ["a", "b-2"] {
            let wanted = format!("annals_{name}{{database=\"{of}\"}}");
            assert!(series.contains(&wanted), "{wanted} is missing: {text}");
        }
    }
}

/// Figures are of all databases, so who asks for them has the role for each.
#[test]
fn figures_need_a_right_to_every_database() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = |name: &str| Tokens::of(folder.path().join(name)).unwrap();
    let mut server = Server::new();
    for name in ["a", "b"] {
        let database = Database::in_memory().unwrap();
        server = server.database_with(name, database, tokens(name)).unwrap();
    }
    let token = |of_b: Option<Role>| {
        let new = NewToken::random(Role::Admin, None);
        tokens("a").add(&new.stored).unwrap();
        if let Some(role) = of_b {
            let mut stored = new.stored.clone();
            stored.role = role.to_string();
            tokens("b").add(&stored).unwrap();
        }
        new.token
    };
    let cases = [
        (token(None), 401),
        (token(Some(Role::Read)), 403),
        (token(Some(Role::Write)), 403),
        (token(Some(Role::Admin)), 200),
    ];
    let running = Running::start(server);
    let client = Client::new();
    let get = |path: &str, token: &str| {
        let request = client.get(format!("{}{path}", running.url)).bearer_auth(token);
        request.send().unwrap().status().as_u16()
    };
    for (token, status) in &cases {
        assert_eq!(get("/v1/a", token), 200, "it is one of the first");
        assert_eq!(get("/metrics", token), *status);
    }
}
