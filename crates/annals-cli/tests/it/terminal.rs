//! The shell at a terminal, as a person uses it: a pseudo-terminal types and looks.

use std::path::Path;

use rexpect::session::{Options, PtySession, spawn_with_options};

use crate::program::{annals, succeed};

const PROMPT: &str = "annals> ";
const PENDING: &str = "annals*> ";
/// How the program ends when nothing went wrong.
const WELL: &str = "Exited 0)";

/// A shell with a person before it.
struct Terminal(PtySession);

impl Terminal {
    /// Starts `annals shell` without colours, and waits for its prompt.
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, &[])
    }

    fn start_with(dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = annals(dir, &["shell"]);
        command.args(arguments).env("NO_COLOR", "1").env_remove("ANNALS_HISTORY");
        command.env("TERM", "xterm").env("XDG_STATE_HOME", dir.join("state"));
        command.envs(variables.iter().copied());
        let options = Options::new().timeout_ms(Some(20_000)).strip_ansi_escape_codes(true);
        let mut terminal = Self(spawn_with_options(command, options).unwrap());
        terminal.sees(PROMPT);
        terminal
    }

    /// Waits until the text is on the screen; returns what came before it.
    fn sees(&mut self, text: &str) -> String {
        self.0.exp_string(text).unwrap_or_else(|error| panic!("no {text:?}: {error}"))
    }

    fn types(&mut self, text: &str) {
        self.0.send(text).unwrap();
        self.0.flush().unwrap();
    }

    fn presses_control(&mut self, key: char) {
        self.0.send_control(key).unwrap();
    }

    /// Types a line, and returns what is shown up to the next prompt.
    fn says(&mut self, line: &str, prompt: &str) -> String {
        self.types(&format!("{line}\r"));
        let shown = self.sees(prompt);
        // Before the answer the line itself is shown.
        shown.split_once('\n').map_or(String::new(), |(_, answer)| answer.replace('\r', ""))
    }

    /// Waits for the end; returns what was shown last, and how the program ended.
    fn ends(mut self) -> (String, String) {
        let rest = self.0.exp_eof().unwrap().replace('\r', "");
        // `Exited(PROCESS, STATUS)` or `Signaled(PROCESS, SIGNAL, ..)`.
        let status = format!("{:?}", self.0.process().wait().unwrap());
        let (kind, _) = status.split_once('(').unwrap();
        let (_, end) = status.split_once("), ").unwrap();
        (rest, format!("{kind} {end}"))
    }

    fn leaves(mut self) {
        self.presses_control('d');
        assert_eq!(self.ends().1, WELL);
    }
}

fn dump(dir: &Path) -> String {
    assert!(succeed(dir, &["check", "a.annals"], "").starts_with("ok: "));
    succeed(dir, &["dump", "a.annals"], "")
}

const SCHEMA: &str = "create_table city\nadd_field city name string\nadd_field city size int32 null\n\
                      create_unique_index city_by_name city name\n";

fn with_schema() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "a.annals"], SCHEMA);
    dir
}

#[test]
fn every_line_commits_by_itself_unless_a_transaction_has_begun() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    let answer = terminal.says("insert city Lille 232", PROMPT);
    assert!(answer.starts_with("city 0\ncommitted txid=2 position="), "{answer:?}");
    assert!(answer.ends_with(" level=checksummed\n"), "{answer:?}");
    assert_eq!(dump(dir.path()).matches("insert_at").count(), 1, "others see it");

    assert_eq!(terminal.says("begin", PENDING), "");
    assert_eq!(terminal.says("insert city Lyon null", PENDING), "city 1\n");
    assert_eq!(dump(dir.path()).matches("insert_at").count(), 1, "others don't see it yet");
    let shown = terminal.says("table city", PENDING);
    assert!(shown.contains("\n 1  Lyon   null\n2 rows\n"), "{shown:?}");
    let answer = terminal.says("commit soft", PROMPT);
    assert!(answer.starts_with("committed txid=3 ") && answer.ends_with(" level=soft\n"));

    terminal.says("begin", PENDING);
    terminal.says("delete_from city 0", PENDING);
    assert_eq!(terminal.says("rollback", PROMPT), "");
    terminal.leaves();
    assert_eq!(dump(dir.path()).matches("insert_at").count(), 2);
}

#[test]
fn an_error_is_shown_and_changes_nothing() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    let shown = terminal.says("insert city Lille", PROMPT);
    assert!(shown.starts_with("error: expected `insert T` and a value for each of 2"), "{shown:?}");
    let shown = terminal.says("isnert city Lille 1", PROMPT);
    assert_eq!(shown, "error: unknown command \"isnert\"; did you mean `insert`?\n");
    let shown = terminal.says("comment \"never ends", PROMPT);
    assert!(shown.starts_with("error: column 9: this string has no end"), "{shown:?}");

    // In a transaction, what was there before the wrong line is there after it.
    terminal.says("insert city Lille 1", PROMPT);
    terminal.says("begin", PENDING);
    terminal.says("insert city Lyon 2", PENDING);
    let shown = terminal.says("insert city Lille 3", PENDING);
    assert!(shown.starts_with("error: ") && shown.contains("city_by_name"), "{shown:?}");
    assert!(terminal.says("begin", PENDING).contains("has begun already"));
    assert!(terminal.says("commit quickly", PENDING).contains("unknown level"));
    terminal.says("insert city Nice 4", PENDING);
    terminal.says("commit", PROMPT);

    // A commit that fails has rolled back, and says so.
    terminal.says("begin", PENDING);
    terminal.says("update city 0 name Nice", PENDING);
    let shown = terminal.says("commit", PROMPT);
    assert!(shown.starts_with("error: "), "{shown:?}");
    assert!(shown.ends_with("the transaction is rolled back\n"), "{shown:?}");
    // So has a line that can't be committed.
    assert!(terminal.says("update city 0 name Nice", PROMPT).starts_with("error: "));
    terminal.says("insert city Metz 5", PROMPT);
    terminal.leaves();
    let rows: Vec<String> = dump(dir.path())
        .lines()
        .filter(|line| line.starts_with("insert_at"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        rows,
        [
            "insert_at city 0 \"Lille\" 1",
            "insert_at city 1 \"Lyon\" 2",
            "insert_at city 2 \"Nice\" 4",
            "insert_at city 3 \"Metz\" 5",
        ]
    );
}

#[test]
fn tab_completes_what_the_place_expects() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    // A completed line is drawn again, prompt and all: what counts is the answer.
    terminal.types("delete_f\tc\t0\r");
    terminal.sees("delete_from ");
    terminal.sees("delete_from city ");
    terminal.sees("table `city` has no row 0");
    terminal.sees(PROMPT);

    terminal.types("insert ci\tLille 232\r");
    terminal.sees("\ncity 0\r\n");
    terminal.sees(PROMPT);
    // Where there are several, two tabs list them.
    terminal.types("update c\t0 \t\t");
    let listed = terminal.sees("size");
    assert!(listed.contains("name"), "{listed:?}");
    terminal.types("s\t233\r");
    terminal.sees("committed txid=3 ");
    terminal.sees(PROMPT);
    // A table that was made in this session is known, too.
    terminal.says("create_table village", PROMPT);
    terminal.types("add_field vil\tname str\t\r");
    terminal.sees("committed txid=5 ");
    terminal.sees(PROMPT);
    terminal.leaves();
    let dump = dump(dir.path());
    assert!(dump.contains("insert_at city 0 \"Lille\" 233\n"), "{dump}");
    assert!(dump.contains("add_field village name string\n"), "{dump}");
}

#[test]
fn control_c_clears_the_line_and_control_d_asks_about_what_is_pending() {
    const QUESTION: &str = "Commit the pending changes? [yes, no: roll back, stay] ";
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("begin", PENDING);
    terminal.types("insert city Par");
    terminal.sees("Par");
    terminal.presses_control('c');
    terminal.sees(PENDING);
    terminal.says("insert city Lille 1", PENDING);

    terminal.presses_control('d');
    terminal.sees(QUESTION);
    terminal.types("what?\r");
    terminal.sees(QUESTION);
    terminal.types("stay\r");
    terminal.sees(PENDING);
    terminal.types("quit\r");
    terminal.sees(QUESTION);
    terminal.presses_control('c');
    terminal.sees(PENDING);
    terminal.types("exit\r");
    terminal.sees(QUESTION);
    terminal.types("Yes\r");
    let (shown, status) = terminal.ends();
    assert_eq!(status, WELL);
    assert!(shown.contains("committed txid=2 "), "{shown:?}");
    assert!(dump(dir.path()).contains("insert_at city 0 \"Lille\" 1\n"));

    for answer in ["no\r", "\x04"] {
        let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
        terminal.says("begin", PENDING);
        terminal.says("delete_from city 0", PENDING);
        terminal.presses_control('d');
        terminal.sees(QUESTION);
        terminal.types(answer);
        let (shown, status) = terminal.ends();
        assert_eq!(status, WELL);
        assert!(shown.contains("rolled back"), "{shown:?}");
        assert!(dump(dir.path()).contains("insert_at city 0 \"Lille\" 1\n"));
    }
    // A transaction without changes needs no question.
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("begin", PENDING);
    terminal.leaves();
}

#[test]
fn what_was_typed_is_remembered_unless_it_shall_not_be() {
    const UP: &str = "\x1b[A";
    let dir = with_schema();
    let history = dir.path().join("state/annals/history");
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("insert city Lille 1", PROMPT);
    terminal.says(" comment \"begins with a blank: not remembered\"", PROMPT);
    // Not only at the end: the session may be killed.
    assert!(std::fs::read_to_string(&history).unwrap().contains("insert city Lille 1\n"));
    terminal.leaves();

    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.types(&format!("{UP}\r"));
    terminal.sees("insert city Lille 1");
    terminal.sees("error: ");
    terminal.sees(PROMPT);
    terminal.leaves();
    let kept = std::fs::read_to_string(&history).unwrap();
    assert!(!kept.contains("blank"), "{kept}");

    std::fs::remove_file(&history).unwrap();
    let mut terminal = Terminal::start(dir.path(), &["a.annals", "--no-history"]);
    terminal.says("insert city Lyon 2", PROMPT);
    terminal.leaves();
    let mut terminal = Terminal::start_with(dir.path(), &["a.annals"], &[("ANNALS_HISTORY", "")]);
    terminal.says("insert city Nice 3", PROMPT);
    terminal.leaves();
    assert!(!history.exists());
    // Where it can't be kept, that is said, and the session continues.
    let elsewhere = [("ANNALS_HISTORY", "/dev/null/none")];
    let mut terminal = Terminal::start_with(dir.path(), &["a.annals"], &elsewhere);
    let shown = terminal.says("insert city Metz 4", PROMPT);
    assert!(shown.contains("city 3\n"), "{shown:?}");
    terminal.leaves();
}

#[test]
fn lines_that_are_pasted_run_one_by_one_up_to_the_first_error() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    let lines = "insert city Lille 1\ninsert city Lyon 2\nfrobnicate\ninsert city Nice 3";
    terminal.types(&format!("\x1b[200~{lines}\x1b[201~\r"));
    terminal.sees("unknown command \"frobnicate\"");
    terminal.sees("1 line behind it was not run");
    terminal.sees(PROMPT);
    terminal.leaves();
    let dump = dump(dir.path());
    assert!(dump.contains("insert_at city 1 \"Lyon\" 2\n") && !dump.contains("Nice"), "{dump}");
}

#[test]
fn lines_that_are_typed_ahead_are_not_lost() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.types("insert city Lille 1\rinsert city Lyon 2\rinsert city Nice 3\r");
    terminal.sees("city 2");
    terminal.sees(PROMPT);
    terminal.leaves();
    let dump = dump(dir.path());
    assert!(dump.contains("insert_at city 2 \"Nice\" 3\n"), "{dump}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let dir = with_schema();
    let shown_with = |variables: &[(&str, &str)]| {
        let mut command = annals(dir.path(), &["shell", "a.annals", "--no-history"]);
        command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
        let options = Options::new().timeout_ms(Some(20_000));
        let mut terminal = Terminal(spawn_with_options(command, options).unwrap());
        terminal.sees("annals> ");
        terminal.types("table city\r");
        let shown = terminal.sees("0 rows");
        terminal.sees("annals> ");
        terminal.types("frobnicate\r");
        let shown = shown + &terminal.sees("unknown command");
        // A key pressed before the prompt stands is not the editor's to read.
        let shown = shown + &terminal.sees("annals> ");
        terminal.presses_control('d');
        shown + &terminal.ends().0
    };
    let shown = shown_with(&[]);
    assert!(shown.contains("\x1b[1mid  name  size\x1b[0m\r\n"), "{shown:?}");
    assert!(shown.contains("\x1b[1;31merror:\x1b[0m "), "{shown:?}");
    let shown = shown_with(&[("NO_COLOR", "1")]);
    assert!(shown.contains("id  name  size\r\n"), "{shown:?}");
    assert!(!shown.contains("\x1b[1m") && !shown.contains("\x1b[2m"), "{shown:?}");
    assert!(!shown.contains("\x1b[1;31m") && !shown.contains("\x1b[32m"), "{shown:?}");
}

#[test]
fn tables_fit_the_terminal_and_end_after_some_rows() {
    let dir = with_schema();
    let long = "x".repeat(300);
    let rows: String = (0..60).map(|n| format!("insert city \"{n} {long}\" {n}\n")).collect();
    succeed(dir.path(), &["shell", "a.annals"], &rows);
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    let shown = terminal.says("table city", PROMPT);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2 + 50 + 1, "{shown}");
    assert!(lines.iter().all(|line| line.len() <= 80), "{shown}");
    assert!(lines[2].contains("xx..  "), "{shown}");
    assert_eq!(lines[52], "50 of 60 rows, 10 not shown; the next: table city 0 50 50");
    let shown = terminal.says("table city 9 50 50", PROMPT);
    assert_eq!(shown.lines().nth(2), Some("50  50 xxxx..    50"));
    assert_eq!(shown.lines().last(), Some("10 of 60 rows, 50 not shown"));
    terminal.leaves();
}

#[cfg(feature = "sqlite")]
#[test]
fn answers_fit_the_terminal() {
    let dir = with_schema();
    let long = "x".repeat(300);
    succeed(dir.path(), &["shell", "a.annals"], &format!("insert city \"{long}\" 7\n"));
    let shown = |sql: &str| {
        let options = Options::new().timeout_ms(Some(20_000)).strip_ansi_escape_codes(true);
        let command = annals(dir.path(), &["sql", "a.annals", sql]);
        let mut session = spawn_with_options(command, options).unwrap();
        session.exp_eof().unwrap().replace('\r', "")
    };
    let answer = shown("SELECT name, 7 AS n, name AS again FROM city");
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines.iter().all(|line| line.len() <= 80), "{answer}");
    assert!(lines[2].contains("xx..  7  xx"), "{answer}");
    let columns: Vec<String> = (0..30).map(|n| format!("{n} AS column_{n}")).collect();
    let answer = shown(&format!("SELECT {}", columns.join(", ")));
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[..3].iter().all(|line| line.len() <= 80), "{answer}");
    assert!(
        lines[3].starts_with("no room for: column_") && lines[3].contains("column_29"),
        "{answer}"
    );
    // Elsewhere nothing is cut.
    let answer = succeed(dir.path(), &["sql", "a.annals", "SELECT name FROM city"], "");
    assert!(answer.lines().any(|line| line.len() > 80), "{answer}");
}

#[test]
fn the_output_may_go_to_a_file_while_a_person_types() {
    let dir = with_schema();
    let mut command = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_annals");
    command.args(["-c", &format!("'{program}' shell a.annals --no-history > out")]);
    command.current_dir(dir.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    let options = Options::new().timeout_ms(Some(20_000)).strip_ansi_escape_codes(true);
    let mut terminal = Terminal(spawn_with_options(command, options).unwrap());
    terminal.sees(PROMPT);
    assert_eq!(terminal.says("insert city Lille 1", PROMPT), "city 0\n", "no part of the output");
    terminal.says("table city", PROMPT);
    terminal.leaves();
    let output = std::fs::read_to_string(dir.path().join("out")).unwrap();
    let (committed, table) = output.split_once('\n').unwrap();
    assert!(committed.starts_with("committed txid=2 "), "{output:?}");
    assert_eq!(table, "id  name   size\n--  -----  ----\n 0  Lille     1\n1 row\n");
}

#[test]
fn an_interrupt_ends_a_long_output_and_not_the_session() {
    let dir = with_schema();
    succeed(
        dir.path(),
        &["shell", "a.annals"],
        "create_table many\nadd_field many name string\ninsert_vector many 0 3000000\n",
    );
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("begin", PENDING);
    terminal.says("update many 0 name \"pending\"", PENDING);
    terminal.types("table many 0 0 3000000\r");
    terminal.sees("   100 ");
    terminal.presses_control('c');
    let rest = terminal.sees(PENDING);
    assert!(rest.contains("error: interrupted"), "{}", rest.len());
    assert!(!rest.contains("2999999"), "all of it was shown");
    // What was pending still is, and the next command isn't ended by it.
    assert!(terminal.says("table many 0 0 1", PENDING).contains("pending"));
    terminal.says("commit", PROMPT);
    terminal.leaves();
    assert!(dump(dir.path()).contains("\"pending\""));
}

#[test]
fn a_byte_that_is_not_utf8_spoils_its_line_and_nothing_else() {
    let dir = with_schema();
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("begin", PENDING);
    terminal.says("insert city Lille 1", PENDING);
    let mut keyboard = terminal.0.process().get_file_handle().unwrap();
    std::io::Write::write_all(&mut keyboard, b"comment caf\xff").unwrap();
    terminal.sees("isn't UTF-8");
    terminal.sees("not run> ");
    terminal.types(" delete_from city 0\r");
    terminal.sees(PENDING);
    terminal.says("commit", PROMPT);
    terminal.leaves();
    let log = succeed(dir.path(), &["log", "a.annals"], "");
    assert!(log.contains("Lille") && !log.contains("comment") && !log.contains("delete"), "{log}");
}

#[test]
fn a_history_that_is_no_file_is_not_read() {
    let dir = with_schema();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(dir.path().join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    for path in ["/dev/zero", "pipe", "/dev/null"] {
        let variables = [("ANNALS_HISTORY", path)];
        let mut terminal = Terminal::start_with(dir.path(), &["a.annals"], &variables);
        terminal.says("table city", PROMPT);
        terminal.leaves();
    }
}

#[test]
fn an_interrupt_leaves_a_good_file() {
    let dir = with_schema();
    let rows: String = (0..2000).map(|n| format!("insert city \"{n}\" {n}\n")).collect();
    succeed(dir.path(), &["shell", "a.annals"], &rows);
    let before = dump(dir.path());
    let mut terminal = Terminal::start(dir.path(), &["a.annals"]);
    terminal.says("begin", PENDING);
    terminal.says("delete_from city 0", PENDING);
    terminal.types("dump\r");
    terminal.sees("insert_at city 5 ");
    // Whatever signal ends it, Ctrl-C's or another: nothing is done about any.
    let status = format!("{:?}", terminal.0.process_mut().exit().unwrap());
    assert!(status.starts_with("Signaled("), "{status}");
    assert_eq!(dump(dir.path()), before);
    succeed(dir.path(), &["shell", "a.annals"], "delete_from city 1\n");
    assert_ne!(dump(dir.path()), before);
}
