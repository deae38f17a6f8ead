//! `annals archive`, `restore` and `check` of an archive: in a folder, and on a real S3 server where there is one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::program::{annals, run, succeed};

/// Makes a database of 30 transactions.
fn create(dir: &Path) {
    let mut script = "create_table page\nadd_field page title string\ncommit\n".to_owned();
    for page in 0..29 {
        script += &format!("insert page \"page {page}\"\ncommit\n");
    }
    succeed(dir, &["shell", "a.annals"], &script);
}

/// Does all that can be done with an archive at a URL.
fn check_all(dir: &Path, url: &str, environment: &[(&str, &str)]) {
    let command = |arguments: &[&str]| {
        let mut command = annals(dir, arguments);
        command.envs(environment.iter().copied());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ok = |arguments: &[&str]| {
        let (status, text, errors) = command(arguments);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{arguments:?}");
        text
    };
    assert!(ok(&["archive", "a.annals", url]).contains("uploaded 30 transactions"));
    assert!(ok(&["archive", "a.annals", url]).contains("uploaded 0 transactions"));
    assert!(ok(&["check", url, "--drill"]).contains("up to transaction 30; restored and compared"));
    assert_eq!(ok(&["check", url, "--race"]), "ok: 200 races, each with one winner\n");
    assert!(ok(&["restore", url, "r.annals", "--at", "txid:17"]).contains("up to transaction 17,"));
    let expected = succeed(dir, &["dump", "a.annals", "--at", "txid:17"], "");
    assert_eq!(succeed(dir, &["dump", "r.annals"], ""), expected);
    assert_eq!(ok(&["dump", url]), succeed(dir, &["dump", "a.annals"], ""));
    assert_eq!(
        ok(&["history", url, "page", "3"]),
        succeed(dir, &["history", "a.annals", "page", "3"], "")
    );
    let (status, _, error) = command(&["restore", url, "r.annals"]);
    assert_ne!(status, Some(0));
    assert!(error.contains("there is such a file"), "{error}");
    let (status, _, error) = command(&["restore", &format!("{url}/nothing"), "n.annals"]);
    assert_ne!(status, Some(0));
    assert!(error.contains("there is no archive here"), "{error}");
    std::fs::remove_file(dir.join("r.annals")).unwrap();
}

#[test]
fn a_folder_is_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let url = format!("file://{}/archive", dir.display());
    check_all(dir, &url, &[]);
    // A damaged object is named, and nothing is restored from it.
    let frames = std::fs::read_dir(dir.join("archive/frames")).unwrap();
    let object = frames.map(|it| it.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&object, bytes).unwrap();
    let found = run(dir, &["check", &url], b"");
    assert_eq!(found.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&found.stderr).contains("doesn't have the bytes"));
    let refused = run(dir, &["restore", &url, "x.annals"], b"");
    assert!(!refused.status.success() && !dir.join("x.annals").exists());
    let wrong = run(dir, &["archive", "a.annals", "ftp://somewhere"], b"");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("isn't the URL of an archive"));
}

/// Returns the objects of an archive in a folder that have some bytes in them.
fn with(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(with(&path, bytes)),
            false => {
                let all = std::fs::read(&path).unwrap();
                found.extend(all.windows(bytes.len()).any(|it| it == bytes).then_some(path));
            }
        }
    }
    found
}

#[test]
fn what_is_erased_goes_from_the_archive() {
    const SECRET: &str = "a secret that must go";
    for parts in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        create(dir);
        let restart = || {
            let database = annals::Options::new().open(dir.join("a.annals")).unwrap();
            let patience = std::time::Duration::from_secs(5);
            database.restart(annals::reports::Older::Kept, patience).unwrap();
            database.close().unwrap();
        };
        if parts > 0 {
            restart();
        }
        succeed(dir, &["shell", "a.annals"], &format!("insert page \"{SECRET}\"\ncommit\n"));
        if parts > 1 {
            restart();
        }
        succeed(dir, &["shell", "a.annals"], "insert page \"last\"\ncommit\n");
        let url = format!("file://{}/archive", dir.display());
        succeed(dir, &["archive", "a.annals", &url], "");
        assert_eq!(with(&dir.join("archive"), SECRET.as_bytes()).len(), 1);
        // What comes after the last upload is in no archive.
        succeed(dir, &["shell", "a.annals"], "insert page \"later\"\ncommit\n");
        succeed(dir, &["erase", "a.annals", "page", "29", "--yes"], "");
        let told = succeed(dir, &["archive", "a.annals", &url], "");
        assert!(told.contains("up to transaction 34"), "{told}");
        assert_eq!(with(&dir.join("archive"), SECRET.as_bytes()), Vec::<PathBuf>::new());
        let checked = succeed(dir, &["check", &url, "--drill"], "");
        assert!(checked.starts_with("ok: ") && checked.lines().count() == 1, "{checked}");
        for txid in ["31", "32", "34"] {
            let (at, name) = (format!("txid:{txid}"), format!("r{txid}.annals"));
            succeed(dir, &["restore", &url, &name, "--at", &at], "");
            let expected = succeed(dir, &["dump", "a.annals", "--at", &at], "");
            assert_eq!(succeed(dir, &["dump", &name], ""), expected);
            assert_eq!(succeed(dir, &["dump", &url, "--at", &at], ""), expected);
            assert!(!expected.contains(SECRET));
        }
        // It goes on as before.
        succeed(dir, &["shell", "a.annals"], "insert page \"more\"\ncommit\n");
        let told = succeed(dir, &["archive", "a.annals", &url], "");
        assert!(told.contains("uploaded 1 transaction,"), "{told}");
    }
}

#[test]
fn commands_read_an_archive_as_they_read_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    let url = format!("file://{}/archive", dir.display());
    succeed(dir, &["archive", "a.annals", &url, "--keep-days", "30"], "");
    let same = |arguments: &[&str]| {
        let of = |place: &str| {
            let arguments: Vec<_> =
                arguments.iter().map(|it| if *it == "FILE" { place } else { it }).collect();
            let Output { status, stdout, stderr } = run(dir, &arguments, b"");
            // `diff` has 3 for rows that differ.
            let is_done = matches!(status.code(), Some(0 | 3));
            assert!(is_done, "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
            String::from_utf8(stdout).unwrap()
        };
        assert_eq!(of(&url), of("a.annals"), "{arguments:?}");
    };
    same(&["history", "FILE", "page", "3"]);
    same(&["blame", "FILE", "page", "3"]);
    same(&["diff", "FILE", "txid:7", "txid:9"]);
    same(&["dump", "FILE", "--at", "txid:7"]);
    same(&["log", "FILE", "--from", "txid:20"]);
    same(&["sql", "FILE", "SELECT count(*), max(title) FROM page"]);
    let asked =
        |place: &str| succeed(dir, &["shell", place, "--read-only"], "schema\nrecord page 3\n");
    assert_eq!(asked(&url), asked("a.annals"));
    let begun = succeed(dir, &["clone", &url, "c.annals", "--lazy"], "");
    assert!(begun.contains("transactions up to 30 can be read"), "{begun}");
    let row = |file: &str| succeed(dir, &["history", file, "page", "3"], "");
    assert_eq!(row("c.annals"), row("a.annals"));
    succeed(dir, &["clone", &url, "c.annals"], "");
    assert!(dir.join("c.annals").exists() && !dir.join("c.annals.partial").exists());
    assert_eq!(succeed(dir, &["dump", "c.annals"], ""), succeed(dir, &["dump", "a.annals"], ""));
}

/// A server of S3, which ends with this.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Finds the server: in the path, or where Go installs it.
fn gateway() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([home.join("go/bin")]);
    folders.map(|folder| folder.join("versitygw")).find(|file| file.is_file())
}

#[test]
fn a_bucket_is_an_archive() {
    let Some(program) = gateway() else {
        return annals_untested::untested(
            "no versitygw; go install github.com/versity/versitygw/cmd/versitygw@latest",
        );
    };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    create(dir);
    std::fs::create_dir_all(dir.join("s3/bucket")).unwrap();
    // A port that is free now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = Command::new(program)
        .args(["--port", &free.to_string(), "--quiet", "posix", "s3"])
        .current_dir(dir)
        .envs([("ROOT_ACCESS_KEY", "testkey"), ("ROOT_SECRET_KEY", "testsecret")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _gateway = Gateway(child);
    let begun = std::time::Instant::now();
    while std::net::TcpStream::connect(free).is_err() {
        assert!(begun.elapsed().as_secs() < 30, "it answers");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let endpoint = format!("http://{free}");
    let environment = [
        ("AWS_ACCESS_KEY_ID", "testkey"),
        ("AWS_SECRET_ACCESS_KEY", "testsecret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
    ];
    check_all(dir, "s3://bucket/people", &environment);
}
