//! A real Chromium, driven over WebDriver.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::{Client, ClientBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long the page may take for anything: it says when it is ready.
const LONGEST: Duration = Duration::from_secs(30);

/// What the page was asked for, what it waits for, and what it shows.
const STATE: &str = "JSON.stringify({
    asked: location.hash, ready: document.body.dataset, now: Math.round(performance.now()), link: globalThis.explorer?.link,
    waits: [...globalThis.explorer?.waiting ?? []], open: [...globalThis.explorer?.asked.open ?? []],
    events: performance.getEntriesByType('resource').filter(it => it.name.includes('/changes')).map(it => it.responseStatus),
    requests: globalThis.explorer?.asked.paths.slice(-8), error: globalThis.explorer?.error, is_hidden: document.hidden,
  }, null, 1) + document.body.outerHTML.slice(0, 300) + document.body.innerText.slice(0, 2000)";

/// A browser with one page.
pub(super) struct Browser {
    runtime: Runtime,
    client: Option<Client>,
    driver: Child,
    /// The address of the driver.
    address: String,
    profile: TempDir,
}

/// Finds a program in the path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Starts the driver; returns it and its port.
///
/// A driver draws a port and listens on it at two addresses; where another program took it at one of
/// them in between, the driver ends. Browsers of other tests draw from the same ports, so one more
/// is started then.
fn start_driver(chromedriver: &Path) -> (Child, u16) {
    const TRIES: u32 = 20;
    for attempt in 1..=TRIES {
        let mut driver = Command::new(chromedriver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        if let Some(port) = port {
            return (driver, port);
        }
        let _ = driver.kill();
        let _ = driver.wait();
        std::thread::sleep(Duration::from_millis(50) * attempt);
    }
    panic!("the driver ended {TRIES} times before it had a port");
}

impl Browser {
    /// Starts a browser with a window of this size; `None`, having said so, where there is none.
    pub(super) fn start(width: u32, height: u32) -> Option<Self> {
        let (Some(chromium), Some(chromedriver)) = (find("chromium"), find("chromedriver")) else {
            annals_untested::untested(
                "no chromium and chromedriver; Debian has them as chromium and chromium-driver",
            );
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let (driver, port) = start_driver(&chromedriver);
        let log = profile.path().join("console.log");
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            // Nothing else than this machine can be reached.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1".to_owned(),
            "--enable-logging".to_owned(),
            format!("--log-file={}", log.display()),
            format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        let metrics = json!({ "width": width, "height": height, "pixelRatio": 1, "mobile": false, "touch": false });
        let options = json!({
            "binary": chromium, "args": arguments, "mobileEmulation": { "deviceMetrics": metrics },
        });
        let capabilities = json!({ "browserName": "chrome", "goog:chromeOptions": options });
        let capabilities = capabilities.as_object().unwrap().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let address = format!("http://127.0.0.1:{port}");
        let client = runtime.block_on(async {
            let mut builder =
                ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
            builder.capabilities(capabilities).connect(&address).await
        });
        let client = Some(client.expect("the browser starts"));
        Some(Self { runtime, client, driver, address, profile })
    }

    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }

    pub(super) fn go(&self, url: &str) {
        self.runtime.block_on(self.client().goto(url)).unwrap();
    }

    /// Runs a script in the page; returns what it returns.
    pub(super) fn run(&self, script: &str) -> Value {
        let execute = |script: &str| {
            let executed = self.runtime.block_on(self.client().execute(script, Vec::new()));
            executed.map_err(Box::new)
        };
        execute(script).unwrap_or_else(|error| {
            let state = execute(&format!("return {STATE}")).unwrap_or_default();
            panic!("{script}: {error}\n{}", state.as_str().unwrap_or_default())
        })
    }

    /// Returns what an expression is.
    pub(super) fn get(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}"))
    }

    pub(super) fn text(&self, expression: &str) -> String {
        self.get(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub(super) fn until(&self, expression: &str) {
        self.until_within(LONGEST, expression);
    }

    pub(super) fn until_within(&self, longest: Duration, expression: &str) {
        let begun = Instant::now();
        while self.get(expression) != Value::Bool(true) {
            assert!(begun.elapsed() < longest, "{expression} isn't so:\n{}", self.text(STATE));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the page shows what its link asks for.
    pub(super) fn ready(&self) {
        self.until("document.body.dataset.ready === '1'");
    }

    /// Follows a link of the page.
    pub(super) fn show(&self, hash: &str) {
        // After many steps the address is written a moment later, as before a click; nothing follows a link that it has already.
        let write = "globalThis.explorer?.writes.timer && explorer.write()";
        self.run(&format!(
            "{write}; document.body.dataset.ready = '0'; location.hash = {}",
            json!(hash)
        ));
        self.ready();
    }

    /// Presses and releases keys, one after the other, with some held down.
    pub(super) fn press(&self, held: &[char], keys: &[char]) {
        self.run("document.body.dataset.ready = '0'");
        self.type_keys(held, keys);
        self.ready();
    }

    /// Does so where nothing is to be waited for.
    pub(super) fn type_keys(&self, held: &[char], keys: &[char]) {
        let down = |value: &char| KeyAction::Down { value: *value };
        let up = |value: &char| KeyAction::Up { value: *value };
        let mut actions = KeyActions::new("keys".to_owned());
        for action in held.iter().map(down) {
            actions = actions.then(action);
        }
        for key in keys {
            actions = actions.then(down(key)).then(up(key));
        }
        for action in held.iter().map(up) {
            actions = actions.then(action);
        }
        self.runtime.block_on(self.client().perform_actions(actions)).unwrap();
    }

    /// Has the browser's own tools do something, as printing.
    pub(super) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let session = self.runtime.block_on(self.client().session_id()).unwrap().unwrap();
        let url = format!("{}/session/{session}/goog/cdp/execute", self.address);
        let body = json!({ "cmd": command, "params": parameters }).to_string();
        let answer = Command::new("curl").args(["-s", "-d", &body, &url]).output().unwrap();
        serde_json::from_slice::<Value>(&answer.stdout).unwrap()["value"].take()
    }

    pub(super) fn picture(&self) -> Vec<u8> {
        self.runtime.block_on(self.client().screenshot()).unwrap()
    }

    /// Returns what the console says, but for notes of the browser about itself.
    pub(super) fn console(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.profile.path().join("console.log"));
        let log = log.unwrap_or_default();
        log.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect()
    }

    /// Fails if the page asked another server for anything, or complained.
    pub(super) fn check(&self) {
        let elsewhere = self.get(
            "performance.getEntriesByType('resource').map(it => it.name).filter(it => !it.startsWith(location.origin) && !it.startsWith('data:'))",
        );
        assert_eq!(elsewhere, json!([]));
        assert_eq!(self.console(), Vec::<String>::new());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let _ = self.runtime.block_on(client.close());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
