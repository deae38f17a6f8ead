//! What an editor shows of a schema's module: rust-analyzer is asked over its protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::library;

/// How long all questions to an editor may take.
const LONGEST: Duration = Duration::from_secs(300);

/// A running rust-analyzer.
struct Editor {
    process: Arc<Mutex<Child>>,
    /// Dropped, it ends the thread that ends a process which doesn't answer.
    _deadline: Sender<()>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u32,
}

impl Editor {
    fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = piped.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let process = Arc::new(Mutex::new(process));
        let (_deadline, ended) = mpsc::channel();
        let late = Arc::clone(&process);
        thread::spawn(move || {
            if ended.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                end(&late);
            }
        });
        Self { process, _deadline, input, output: BufReader::new(output), requests: 0 }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// Returns the next message that fulfils a condition, and answers the editor's own requests.
    fn message_with(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "rust-analyzer ended");
                if let Some(number) = line.strip_prefix("Content-Length: ") {
                    length = number.trim().parse().unwrap();
                }
            }
            let mut text = vec![0; length];
            self.output.read_exact(&mut text).unwrap();
            let message: Value = serde_json::from_slice(&text).unwrap();
            if wanted(&message) {
                return message;
            }
            if message["method"].is_string() && message["id"] != Value::Null {
                self.send(json!({ "id": message["id"], "result": null }));
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({ "id": id, "method": method, "params": params }));
        let answer = self.message_with(|it| it["id"] == id && it["method"].is_null());
        assert!(answer["error"].is_null(), "{method} {params}: {}", answer["error"]);
        answer["result"].clone()
    }
}

/// Ends a process that may have ended already.
fn end(process: &Mutex<Child>) {
    let mut process = process.lock().unwrap();
    let _killed = process.kill();
    let _status = process.wait();
}

impl Drop for Editor {
    fn drop(&mut self) {
        end(&self.process);
    }
}

/// Opens a package in an editor, and waits until all of it is loaded.
fn open(command: Command, folder: &str, file: &str, text: &str) -> Editor {
    let mut editor = Editor::start(command);
    let _capabilities = editor.request(
        "initialize",
        &json!({
            "processId": null,
            "rootUri": folder,
            "capabilities": {
                "experimental": { "serverStatusNotification": true },
                "textDocument": { "hover": { "contentFormat": ["markdown"] } },
            },
            "initializationOptions": { "checkOnSave": false, "cachePriming": { "enable": false } },
        }),
    );
    editor.notify("initialized", &json!({}));
    let document = json!({ "uri": file, "languageId": "rust", "version": 1, "text": text });
    editor.notify("textDocument/didOpen", &json!({ "textDocument": document }));
    let _loaded = editor.message_with(|message| message["params"]["quiescent"] == true);
    editor
}

/// The place of a text in a file, as the protocol counts.
fn position(text: &str, of: &str) -> Value {
    let start = text.find(of).unwrap();
    let (before, line) = (&text[..start], text[..start].rfind('\n').map_or(0, |end| end + 1));
    json!({ "line": before.matches('\n').count(), "character": start - line })
}

/// All that the macro makes leads to its call, as an editor can find no place in the schema; what is the
/// same for every schema leads to the library. Both show documentation as it is meant.
#[test]
fn an_editor_leads_to_the_schema_and_shows_its_documentation() {
    if !Command::new("rust-analyzer").arg("--version").output().is_ok_and(|it| it.status.success())
    {
        return annals_untested::untested("no rust-analyzer; rustup component add rust-analyzer");
    }
    let call = "annals::schema!(pub mod db = \"library.schema\");";
    let package = library::package("in_an_editor", call, "use db::book;");
    let path = package.folder.join("src/lib.rs");
    let text = std::fs::read_to_string(&path).unwrap();
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    let file = uri(&path);
    let mut editor = open(package.command("rust-analyzer"), &uri(&package.folder), &file, &text);
    let at = |of: &str| json!({ "textDocument": { "uri": file }, "position": position(&text, of) });
    let (call_line, library) = (position(&text, call)["line"].clone(), "crates/annals/src/typed/");
    for (of, shown, from_macro) in [
        ("Database::open", "pub type Database", true),
        ("open(path)", "Opens or creates a database", false),
        ("book::Id", "The table `book`.", true),
        ("Id = ", "The id of a row of `book`.", true),
        ("write(|tx|", "Runs `change` in a transaction", false),
        ("book().require(", "the table `book`", true),
        ("insert(", "Inserts a row with the table's next id", false),
        ("New {", "The values of a new row of `book`.", true),
        ("require(", "Returns the row with that id", false),
        ("title(), ", "The field `title`: string.", true),
        ("by_author()", "the index `book_by_author`", true),
        ("with_author(", "rows with these leading fields", true),
    ] {
        let found = editor.request("textDocument/definition", &at(of));
        let mut places = found.as_array().into_iter().flatten();
        let leads_there = places.any(|place| {
            let to = place["uri"].as_str().unwrap();
            if from_macro {
                to == file && place["range"]["start"]["line"] == call_line
            } else {
                to.contains(library)
            }
        });
        assert!(leads_there, "{of}: {found}");
        let hover = editor.request("textDocument/hover", &at(of));
        let hover = hover["contents"]["value"].as_str().unwrap();
        assert!(hover.contains(shown), "{of}: {hover}");
        assert!(!hover.lines().any(|line| line.starts_with("/ ")), "{of}: {hover}");
    }
    // A word that is begun: the names after the dot before it.
    for (of, offered) in [("title(), ", "author"), ("by_author()", "require")] {
        let found = editor.request("textDocument/completion", &at(of));
        let items = found["items"].as_array().or(found.as_array()).unwrap();
        let name =
            |item: &Value| item["label"].as_str().unwrap().split('(').next().map(str::to_owned);
        let names: Vec<_> = items.iter().filter_map(name).collect();
        assert!(names.iter().any(|name| name == offered), "{of}: {names:?}");
        // These are of the dynamic API, or only lead to a message of the compiler.
        let others = ["first", "equal", "set", "value", "insert", "delete"];
        let wrong = names.iter().find(|name| others.contains(&name.as_str()));
        assert_eq!(wrong, None, "{of}: {names:?}");
    }
}
