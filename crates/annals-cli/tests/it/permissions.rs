//! Files that are made of a database: nobody may do more with them than with the database itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of a user and a group that are nobody's, whether or not they have a name.
const NOBODY: u32 = 65534;

/// A folder with a journal, and the program that works on it.
struct Place {
    folder: tempfile::TempDir,
    program: PathBuf,
    umask: &'static str,
    user: Option<u32>,
}

impl Place {
    fn new(umask: &'static str, user: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_annals"));
        if let Some(user) = user {
            // Another user may have no way to where it was built.
            let copy = folder.path().join("program");
            fs::copy(&program, &copy).unwrap();
            chown(folder.path(), Some(user), Some(user)).unwrap();
            program = copy;
        }
        let place = Self { folder, program, umask, user };
        place.run("shell a", "create_table t\nadd_field t s string\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program, which must do what is asked.
    fn run(&self, arguments: &str, input: &str) {
        let line = format!("umask {}; exec '{}' {arguments}", self.umask, self.program.display());
        fs::write(self.path("input"), input).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(self.folder.path());
        command.stdin(fs::File::open(self.path("input")).unwrap());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "annals {arguments}: {errors}");
        fs::remove_file(self.path("input")).unwrap();
    }

    /// Runs commands one after the other; returns all files that they made, with what made them.
    fn make_all(&self) -> Vec<(String, PathBuf)> {
        let mut made = Vec::new();
        for (arguments, input) in commands() {
            let before = files(self.folder.path());
            self.run(arguments, &input);
            let new = files(self.folder.path()).into_iter().filter(|path| !before.contains(path));
            made.extend(new.map(|path| (arguments.to_owned(), path)));
        }
        made.extend(self.save_a_tail().map(|path| ("saving a tail".to_owned(), path)));
        made
    }

    /// Lets an opening find what may have been a commit; returns the file that it is saved in.
    fn save_a_tail(&self) -> Option<PathBuf> {
        let end =
            annals_tools::inspect(&annals::Options::new(), self.path("a")).unwrap().end.position;
        let journal = fs::OpenOptions::new().write(true).open(self.path("a")).unwrap();
        journal.write_all_at(b"may have been a commit", end + 64).unwrap();
        self.run("shell a", "insert t \"another\"\n");
        let is_tail = |path: &PathBuf| path.to_string_lossy().contains("/a.tail-");
        files(self.folder.path()).into_iter().find(is_tail)
    }
}

/// The commands that make files of `a`, in an order in which each has what it needs, and their input.
fn commands() -> Vec<(&'static str, String)> {
    let rows = |count| {
        "insert t \"some text that is long enough to make an image worth while\"\n".repeat(count)
    };
    let mut commands = vec![("shell a", rows(30_000))];
    let others = [
        "backfill a --mode restart",
        "backup a backup",
        "push a pushed",
        "convert a converted",
        "merge merged a backup",
        "recover a --salvage salvaged",
        "export csv a csv",
        "export json a json",
        "export ndjson a ndjson",
        "export joedb a joedb",
        "dump a --format csv dumped",
    ];
    commands.extend(others.map(|other| (other, String::new())));
    if cfg!(feature = "sqlite") {
        commands.push(("export sqlite a sqlite", String::new()));
    }
    // These replace files that were there.
    commands.push(("shell a", rows(100)));
    commands.push(("backfill a --mode restart", String::new()));
    commands.push(("push a pushed", String::new()));
    commands.push(("erase a t 3 --yes", String::new()));
    commands.push(("pack a packed", String::new()));
    commands.push(("pack a", String::new()));
    commands.push(("shell a --shared", rows(10)));
    commands.push(("backfill a --shared --mode restart", String::new()));
    commands
}

/// Returns all files below a folder, but for the journal and the program.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.ends_with("a") || path.ends_with("program") => {}
            false => found.push(path),
        }
    }
    found
}

fn is_root() -> bool {
    let folder = tempfile::tempdir().unwrap();
    fs::metadata(folder.path()).unwrap().uid() == 0
}

/// Returns what is compared: mode, owner, group.
fn facts(path: &Path) -> (u32, u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.mode() & 0o7777, metadata.uid(), metadata.gid())
}

#[test]
fn what_is_made_of_a_database_has_its_mode_owner_and_group() {
    for (umask, mode) in [("022", 0o600), ("000", 0o640), ("077", 0o664)] {
        let place = Place::new(umask, None);
        let journal = place.path("a");
        fs::set_permissions(&journal, Permissions::from_mode(mode)).unwrap();
        if is_root() {
            chown(&journal, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let expected = facts(&journal);
        let made = place.make_all();
        assert!(made.len() > 20 && made.iter().any(|(by, _)| by == "saving a tail"), "{made:?}");
        for (by, path) in made.into_iter().filter(|(_, path)| path.exists()) {
            assert_eq!(facts(&path), expected, "{} by {by}", path.display());
        }
        assert_eq!(facts(&journal), expected);
    }
}

#[test]
fn who_may_not_give_files_away_makes_them_all_the_same() {
    if !is_root() {
        return; // the test above is run by such a user
    }
    let place = Place::new("022", Some(NOBODY));
    let journal = place.path("a");
    // The group is one that this user isn't in: its rights are nobody's in the files that are made.
    chown(&journal, Some(NOBODY), Some(1)).unwrap();
    fs::set_permissions(&journal, Permissions::from_mode(0o640)).unwrap();
    for (by, path) in place.make_all().into_iter().filter(|(_, path)| path.exists()) {
        assert_eq!(facts(&path), (0o600, NOBODY, NOBODY), "{} by {by}", path.display());
    }
}

#[test]
fn a_merged_database_is_for_those_who_may_use_all_that_it_is_made_of() {
    let place = Place::new("022", None);
    place.run("backup a b", "");
    fs::set_permissions(place.path("a"), Permissions::from_mode(0o664)).unwrap();
    fs::set_permissions(place.path("b"), Permissions::from_mode(0o640)).unwrap();
    place.run("merge merged a b", "");
    assert_eq!(facts(&place.path("merged")).0, 0o640);
}

#[test]
fn an_export_that_replaces_a_file_is_no_more_open_than_the_database() {
    let place = Place::new("022", None);
    fs::set_permissions(place.path("a"), Permissions::from_mode(0o600)).unwrap();
    fs::write(place.path("out"), "what anybody may read").unwrap();
    fs::set_permissions(place.path("out"), Permissions::from_mode(0o644)).unwrap();
    place.run("export json --replace a out", "");
    assert_eq!(facts(&place.path("out")).0, 0o600);
    // One that may be run or only be read is data all the same, and its copy can be brought forward.
    fs::set_permissions(place.path("a"), Permissions::from_mode(0o555)).unwrap();
    place.run("push a pushed", "");
    assert_eq!(facts(&place.path("pushed")).0, 0o644);
}

#[test]
fn what_replaces_a_file_that_is_no_export_keeps_its_mode() {
    let place = Place::new("022", None);
    fs::write(place.path("s.schema"), "create_table t\n").unwrap();
    place.run("compile s.schema -o s.rs", "");
    assert_eq!(facts(&place.path("s.rs")).0, 0o644);
    fs::set_permissions(place.path("s.rs"), Permissions::from_mode(0o600)).unwrap();
    place.run("compile s.schema -o s.rs", "");
    assert_eq!(facts(&place.path("s.rs")).0, 0o600);
}
