//! The explorer in a real browser: how soon it is painted, beside an empty page of the same size; how long a frame of data
//! takes while the slider is dragged; the browser's work for a step; the longest frame while a long table is scrolled;
//! and the memory of page and server while all of that goes on.
//!
//! The server runs in this process. Where there is no Chromium, it says so.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]

#[path = "../../../crates/annals-cli/tests/it/explore/browser.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the browser of the tests")]
mod browser;
mod empty;

use std::time::{Duration, Instant};

use annals::{Database, FieldNumber, RowId, TableNumber, ValueRef};
use annals_replica::lazy::testing::create;
use annals_server::{NewToken, Role, Server};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use self::browser::Browser;
use crate::engines::Failure;
use crate::figures::{Figure, Measured};

/// How many bytes of journal and image a row of the database takes, about.
const ROW: u64 = 226;
/// How often each page is opened.
const OPENINGS: usize = 10;
/// Over how many places the slider is dragged, and how many transactions are stepped over.
const PLACES: usize = 100;
/// When the browser has painted something, in milliseconds.
const PAINTED: &str = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
/// What the scripts share: `shown()` waits until the page shows what is asked for, `drag(share)` moves the slider.
const SCRIPTS: &str = "
  const frame = () => new Promise(requestAnimationFrame);
  globalThis.shown = async () => { while (document.body.dataset.ready !== '1') await frame(); };
  globalThis.drag = async (share) => {
    const slider = document.querySelector('[type=range]');
    slider.value = Math.round(Number(slider.min) + share * (slider.max - slider.min));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await shown();
  };
  globalThis.step = async (key) => {
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    await shown();
  };
  globalThis.scroll = async (milliseconds, pixels) => {
    const grid = document.querySelector('.grid');
    const frames = [];
    let [begun, last] = [performance.now(), performance.now()];
    while (last - begun < milliseconds) {
      if (grid) grid.scrollTop += pixels;
      await frame();
      const now = performance.now();
      frames.push(now - last);
      last = now;
    }
    return frames;
  };";

/// The database, and how long it is looked at.
#[derive(clap::Args)]
pub(crate) struct Looked {
    /// MiB of the database: its journal and its image.
    #[arg(long, default_value_t = 1024)]
    pub(crate) mib: u64,
    /// Transactions of one row, after those that made the rows.
    #[arg(long, default_value_t = 20_000)]
    transactions: u64,
    /// For how many minutes it is dragged, stepped and scrolled before its memory is measured again.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

/// Runs it.
pub(crate) fn run(looked: &Looked) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.annals");
    let rows = (looked.mib << 20) / ROW;
    let database = create(&path, rows);
    for change in 0..looked.transactions {
        update(&database, change.wrapping_mul(0x9e37_79b9) % rows)?;
    }
    let new = NewToken::random(Role::Read, None);
    let server = Server::new().database("a", database)?.session(new.stored);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listening = runtime.block_on(server.listen("127.0.0.1:0"))?;
    let link = format!("{}/explore/a?token={}", listening.url(), new.token);
    let (end, ended) = oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        drop(runtime.block_on(listening.run(async { drop(ended.await) })));
    });
    let measured = measure(looked, &link);
    drop(end);
    running.join().map_err(|_| "the server panicked")?;
    measured.map(Measured::medians)
}

/// Commits a change of a row.
fn update(database: &Database, id: u64) -> Result<(), Failure> {
    let age = ValueRef::Int32(i32::try_from(id % 90)?);
    database.write(|tx| tx.update(TableNumber(0), RowId(id), FieldNumber(1), age))?;
    Ok(())
}

fn measure(looked: &Looked, link: &str) -> Result<Measured, Failure> {
    let mut measured = Measured::default();
    let browser = Browser::start(1280, 800).ok_or("there is no chromium and chromedriver here")?;
    browser.go(link);
    browser.ready();
    let page = browser.text("location.href");
    browser.until("explorer.activity.known === explorer.activity.last");
    paint(&browser, &page, &mut measured)?;
    browser.go(&format!("{page}#/person"));
    browser.ready();
    browser.run(SCRIPTS);
    let drag = format!(
        "const times = []; for (let i = 1; i <= {PLACES}; i += 1) {{ const begun = performance.now(); \
         await drag(i * 7919 % {PLACES} / {PLACES}); times.push(performance.now() - begun); }} return times;"
    );
    let mut times = numbers(&wait(&browser, &drag));
    measured.add("Annals", ("dragging: a frame of data, p95", "ms"), percentile(&mut times, 95));
    let before = metric(&browser, "TaskDuration");
    let mut times = numbers(&wait(
        &browser,
        &format!(
            "const times = []; for (let i = 0; i < {PLACES}; i += 1) {{ const begun = performance.now(); \
         await step('ArrowLeft'); times.push(performance.now() - begun); }} return times;"
        ),
    ));
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let work = (metric(&browser, "TaskDuration") - before) * 1e3 / PLACES as f64;
    measured.add("Annals", ("a step: the browser's work", "ms"), work);
    measured.add("Annals", ("a step, p95", "ms"), percentile(&mut times, 95));
    browser.show("#/person");
    let mut frames = numbers(&wait(&browser, "return scroll(10000, 1500)"));
    measured.add("Annals", ("scrolling: the longest frame", "ms"), percentile(&mut frames, 100));
    measured.add("Annals", ("scrolling: p99 of frames", "ms"), percentile(&mut frames, 99));
    last_row(&browser, &mut measured);
    remember(looked, &browser, &mut measured)?;
    browser.go("about:blank");
    browser.run(SCRIPTS);
    let mut frames = numbers(&wait(&browser, "return scroll(10000, 1500)"));
    measured.add(
        "an empty page",
        ("scrolling: the longest frame", "ms"),
        percentile(&mut frames, 100),
    );
    measured.add("an empty page", ("scrolling: p99 of frames", "ms"), percentile(&mut frames, 99));
    Ok(measured)
}

/// Measures how soon something is painted, and the rows are shown.
fn paint(browser: &Browser, page: &str, measured: &mut Measured) -> Result<(), Failure> {
    let size = browser.get(
        "performance.getEntriesByType('resource').filter(it => !it.name.includes('/v1/')).reduce((sum, it) => sum + it.decodedBodySize, 0)",
    );
    let empty = empty::serve(size.as_u64().unwrap_or_default())?;
    for _ in 0..OPENINGS {
        for (engine, url) in [("Annals", page), ("an empty page", empty.as_str())] {
            browser.go("about:blank");
            browser.go(url);
            browser.until(&format!("{PAINTED} > 0"));
            let painted = browser.get(PAINTED).as_f64().unwrap_or_default();
            measured.add(engine, ("first paint", "ms"), painted);
        }
        browser.go(page);
        browser.ready();
        let rows = browser.get("Number(document.body.dataset.after)").as_f64();
        measured.add("Annals", ("rows and slider are there", "ms"), rows.unwrap_or_default());
    }
    Ok(())
}

/// Measures a jump to the end of the table.
fn last_row(browser: &Browser, measured: &mut Measured) {
    let begun = Instant::now();
    browser.run("document.querySelector('.grid').scrollTop = 1e9");
    browser.until("Number(document.querySelector('.grid .row:last-child')?.dataset.row) === explorer.table().next_id - 1");
    measured.add("Annals", ("a jump to the last row", "ms"), begun.elapsed().as_secs_f64() * 1e3);
}

/// Drags, steps and scrolls for some minutes, and compares what page and server have in memory.
fn remember(looked: &Looked, browser: &Browser, measured: &mut Measured) -> Result<(), Failure> {
    let begun = Instant::now();
    // When it is looked at, and as what: so it shows whether memory still grows.
    let mut looks = [
        (0, ["memory of the page after one round", "memory of the server after one round"]),
        (1, ["memory of the page after half the time", "memory of the server after half the time"]),
    ]
    .into_iter()
    .peekable();
    let minutes = Duration::from_secs(60 * looked.minutes);
    while looks.peek().is_some_and(|(half, _)| *half == 0) || begun.elapsed() < minutes {
        for share in [0.1, 0.9, 0.5] {
            wait(browser, &format!("await drag({share})"));
            wait(browser, "for (let i = 0; i < 10; i += 1) await step('ArrowRight')");
            wait(browser, "await scroll(500, 5000)");
        }
        for link in [
            "#/person/777",
            "#:log",
            "#:schema",
            "#:search?text=42",
            "#/person?order=by_age",
            "#/person",
        ] {
            browser.show(link);
        }
        if let Some((_, what)) = looks.next_if(|(half, _)| begun.elapsed() >= minutes / 2 * *half) {
            add_memory(browser, what, measured)?;
        }
    }
    add_memory(
        browser,
        ["memory of the page at the end", "memory of the server at the end"],
        measured,
    )
}

/// Adds what the page's objects and this process have in memory.
fn add_memory(
    browser: &Browser,
    [page, server]: [&'static str; 2],
    measured: &mut Measured,
) -> Result<(), Failure> {
    browser.devtools("HeapProfiler.collectGarbage", &json!({}));
    let heap = metric(browser, "JSHeapUsedSize") / f64::from(1 << 20);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let resident: f64 =
        line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    measured.add("Annals", (page, "MiB"), heap);
    measured.add("Annals", (server, "MiB"), resident / 1024.0);
    Ok(())
}

/// Runs a script that may wait; returns what it returns.
fn wait(browser: &Browser, script: &str) -> Value {
    browser.run(&format!("return (async () => {{ {script} }})()"))
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(place).copied().unwrap_or(f64::NAN)
}

/// Returns one of the browser's own figures.
fn metric(browser: &Browser, name: &str) -> f64 {
    browser.devtools("Performance.enable", &json!({}));
    let all = browser.devtools("Performance.getMetrics", &json!({}));
    let found = all["metrics"].as_array().and_then(|all| all.iter().find(|it| it["name"] == name));
    found.and_then(|it| it["value"].as_f64()).unwrap_or(f64::NAN)
}
