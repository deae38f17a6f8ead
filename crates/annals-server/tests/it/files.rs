//! Files by ranges, as any client of HTTP asks for them.

use std::time::Duration;

use annals::{BackfillMode, Database, Options};
use annals_replica::lazy::testing::{create, touch};
use annals_server::{Limits, NewToken, Role, Server, Tokens};
use reqwest::blocking::{Client, Response};
use serde_json::Value;

use crate::running::Running;

const PERSONS: u64 = 5000;

struct World {
    running: Running,
    database: Database,
    client: Client,
    _folder: tempfile::TempDir,
}

impl World {
    fn new(pinned: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = create(&folder.path().join("a.annals"), PERSONS);
        database.backfill(BackfillMode::Restart).unwrap();
        (0..5).for_each(|_| touch(&database, PERSONS));
        let server = Server::new().database("a", database.clone()).unwrap().open_to_all();
        let running = Running::start(server.limits(Limits { pinned, ..Limits::default() }));
        Self { running, database, client: Client::new(), _folder: folder }
    }

    fn get(&self, rest: &str, headers: &[(&str, &str)]) -> Response {
        let request = self.client.get(format!("{}{rest}", self.running.of("a")));
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().unwrap()
    }

    fn files(&self) -> Value {
        serde_json::from_str(&self.get("/files", &[]).text().unwrap()).unwrap()
    }

    fn path(&self) -> std::path::PathBuf {
        self._folder.path().join("a.annals")
    }
}

fn header(response: &Response, name: &str) -> String {
    response.headers().get(name).map_or_else(String::new, |it| it.to_str().unwrap().to_owned())
}

#[test]
fn segments_are_sent_whole_or_by_ranges_and_without_their_secret() {
    let world = World::new(Duration::from_secs(60));
    let files = world.files();
    let segments = files["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 2);
    assert_eq!(files["txid"], world.database.read().txid().0);
    for (number, segment) in segments.iter().enumerate() {
        let (name, is_sealed) = match number {
            0 => ("a.annals-segment-000000", true),
            _ => ("a.annals", false),
        };
        let file = std::fs::read(world.path().with_file_name(name)).unwrap();
        assert_eq!(segment["sealed"], is_sealed);
        let path = format!("/segments/{number}");
        let whole = world.get(&path, &[]);
        assert_eq!(whole.status(), 200);
        let tag = header(&whole, "etag");
        assert_eq!(tag, format!("\"{}\"", segment["tag"].as_str().unwrap()));
        let caching = if is_sealed { "max-age=31536000, immutable" } else { "no-cache" };
        assert_eq!(header(&whole, "cache-control"), caching);
        let whole = whole.bytes().unwrap();
        assert_eq!(whole.len() as u64, segment["bytes"]);
        assert!(whole[16384..] == file[16384..whole.len()], "the frames are those of the file");
        // The copies of the slots have the secret of the file at their 57th byte.
        for at in [4096 + 512, 4096 + 1024, 8192 + 512, 8192 + 1024].map(|at| at + 56) {
            let secret = &file[at..at + 16];
            assert!(secret != [0; 16] && !whole.windows(16).any(|bytes| bytes == secret));
        }

        let range = |range: &str| world.get(&path, &[("range", range)]);
        let part = range("bytes=16000-16500");
        assert_eq!(part.status(), 206);
        assert_eq!(header(&part, "content-range"), format!("bytes 16000-16500/{}", whole.len()));
        assert!(part.bytes().unwrap() == whole[16000..16501]);
        assert!(range("bytes=-5").bytes().unwrap() == whole[whole.len() - 5..]);
        let outside = range(&format!("bytes={}-", whole.len()));
        assert_eq!(outside.status(), 416);
        assert_eq!(header(&outside, "content-range"), format!("bytes */{}", whole.len()));
        let of =
            |tag: &str| world.get(&path, &[("range", "bytes=0-0"), ("if-range", tag)]).status();
        assert_eq!((of(&tag), of("\"other\"")), (206.try_into().unwrap(), 200.try_into().unwrap()));
        assert_eq!(world.get(&path, &[("if-none-match", &tag)]).status(), 304);
        let head = world.client.head(format!("{}{path}", world.running.of("a"))).send().unwrap();
        assert_eq!(header(&head, "content-length"), whole.len().to_string());
    }
    assert_eq!(world.get("/segments/2", &[]).status(), 404);
    assert_eq!(world.get("/segments/x", &[]).status(), 400);

    // The newest one grows, and keeps its tag.
    touch(&world.database, PERSONS);
    let grown = &world.files()["segments"][1];
    assert_eq!(grown["tag"], segments[1]["tag"]);
    assert!(grown["bytes"].as_u64() > segments[1]["bytes"].as_u64());
}

#[test]
fn what_the_server_sends_is_a_database_of_its_own() {
    let world = World::new(Duration::from_secs(60));
    let expected = world.database.read();
    let files = world.files();
    let folder = tempfile::tempdir().unwrap();
    let save = |rest: &str, name: &str| {
        std::fs::write(folder.path().join(name), world.get(rest, &[]).bytes().unwrap()).unwrap();
    };
    save("/segments/0", "b.annals-segment-000000");
    save("/segments/1", "b.annals");
    save(&format!("/image/{}", files["image"]["root"]), "b.annals-image");
    let copy = Options::new().open(folder.path().join("b.annals")).unwrap();
    assert_eq!(copy.recovered().findings, Vec::<String>::new());
    assert_eq!(copy.read().point(), expected.point());
    copy.read().check().unwrap();
    copy.close().unwrap();
}

#[test]
fn a_root_can_be_read_for_a_while_after_each_read() {
    let world = World::new(Duration::from_secs(3));
    let root = world.files()["image"]["root"].as_u64().unwrap();
    let path = format!("/image/{root}");
    let first = world.get(&path, &[]).bytes().unwrap();
    let replace = || {
        for _ in 0..3 {
            (0..30).for_each(|_| touch(&world.database, PERSONS));
            world.database.backfill(BackfillMode::Full).unwrap();
        }
    };
    replace();
    // What it reaches is as it was, though its space would be used again.
    let again = world.get(&path, &[]);
    assert_eq!(
        header(&again, "etag"),
        header(&world.get(&path, &[("range", "bytes=0-0")]), "etag")
    );
    assert!(again.bytes().unwrap()[..12288] == first[..12288]);
    let oldest = |database: &Database| {
        let backfilled = database.backfill(BackfillMode::Full).unwrap();
        backfilled.oldest_reader.map(|it| it.root)
    };
    assert_eq!(oldest(&world.database), Some(root));
    while oldest(&world.database) == Some(root) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let gone = world.get(&path, &[]);
    assert_eq!(gone.status(), 410);
    assert!(gone.text().unwrap().contains("the newest is"));
    let newest = world.files()["image"]["root"].as_u64().unwrap();
    assert!(newest > root);
    assert_eq!(world.get(&format!("/image/{newest}"), &[]).status(), 200);
    assert_eq!(world.get(&format!("/image/{}", newest + 1), &[]).status(), 410);
}

#[test]
fn files_need_a_token_that_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.annals");
    let database = create(&path, 1000);
    let tokens = Tokens::of(&path).unwrap();
    let new = NewToken::random(Role::Read, None);
    tokens.add(&new.stored).unwrap();
    let server = Server::new().database_with("a", database, tokens).unwrap();
    let running = Running::start(server);
    let client = Client::new();
    for rest in ["/files", "/segments/0", "/segments/7", "/image/1", "/image/9"] {
        let get = |name: &str| client.get(format!("{}{rest}", running.of(name)));
        let (here, elsewhere) = (get("a").send().unwrap(), get("b").send().unwrap());
        assert_eq!(
            (here.status(), elsewhere.status()),
            (401.try_into().unwrap(), 401.try_into().unwrap())
        );
        assert_eq!(here.text().unwrap(), elsewhere.text().unwrap());
    }
    let with = client.get(format!("{}/files", running.of("a"))).bearer_auth(&new.token);
    assert_eq!(with.send().unwrap().status(), 200);
}
