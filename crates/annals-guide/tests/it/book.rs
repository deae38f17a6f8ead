//! The book as a whole: its contents, its links, its kinds of blocks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use annals_guide::{Chapter, Link, chapters, folder, summary};

/// What is only shown, and why. A block that can be run doesn't belong here.
const NOT_RUN: [(&str, &str); 15] = [
    ("runbook", "needs a log"),
    ("runbook", "needs a log"),
    ("runbook", "needs a log"),
    ("runbook", "needs a bucket"),
    ("runbook", "needs a bucket"),
    ("shared-log", "needs nats-server"),
    ("shared-log", "needs nats-server"),
    ("shared-log", "needs nats-server"),
    ("shared-log", "needs nats-server"),
    ("shared-log", "needs nats-server"),
    ("sql", "it is built in release mode, which takes minutes"),
    ("threads", "axum isn't among the packages of the guide"),
    ("threads", "axum isn't among the packages of the guide"),
    ("tutorial", "it makes a package, with the library from beside it"),
    ("tutorial", "it needs that package"),
];

#[test]
fn the_contents_name_each_chapter_once() {
    let mut listed: Vec<_> = summary().links.into_iter().map(|link| link.target).collect();
    let count = listed.len();
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), count, "SUMMARY.md names a chapter twice");
    let there: BTreeSet<_> = chapters().iter().map(|c| format!("{}.md", c.name)).collect();
    let listed: BTreeSet<_> = listed.into_iter().collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "SUMMARY.md doesn't name {missing:?}");
    let dead: Vec<_> = listed.difference(&there).collect();
    assert!(dead.is_empty(), "SUMMARY.md names {dead:?}, which aren't there");
}

#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for chapter in chapters() {
        for link in &chapter.links {
            if let Err(why) = follow(&chapter, link) {
                dead.push(format!("{}.md:{}: {}: {why}", chapter.name, link.line, link.target));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Looks for the file and the heading that a link names. What is on the web isn't looked for.
fn follow(chapter: &Chapter, link: &Link) -> Result<(), &'static str> {
    if link.target.starts_with("https://") {
        return Ok(());
    }
    let (file, heading) = link.target.split_once('#').unwrap_or((&link.target, ""));
    let path = match file {
        "" => folder().join(format!("{}.md", chapter.name)),
        file => folder().join(file),
    };
    if !path.exists() {
        return Err("there is no such file");
    }
    let has_heading = || {
        let text = fs::read_to_string(&path).unwrap();
        Chapter::parse("", &text).headings.iter().any(|there| there == heading)
    };
    if heading.is_empty() || has_heading() { Ok(()) } else { Err("there is no such heading") }
}

#[test]
fn blocks_are_of_kinds_that_are_run() {
    let mut wrong = Vec::new();
    let mut not_run = Vec::new();
    for chapter in chapters() {
        let mut prints = false;
        for block in &chapter.blocks {
            let mut say =
                |what: &str| wrong.push(format!("{}.md:{}: {what}", chapter.name, block.line));
            if let Some(reason) = block.not_run() {
                not_run.push((chapter.name.clone(), reason.to_owned()));
                continue; // What is above may still be followed by what it prints.
            }
            match block.language.as_str() {
                "schema" if Path::new(&block.note).extension().is_none() => {
                    say("a schema needs the name of its file: ```schema people.schema");
                }
                "schema" => {
                    if let Err(error) = annals_schema::parse(&block.text) {
                        say(&format!("{error:?}"));
                    }
                }
                "rust" | "sh" if !block.note.is_empty() => say("what is behind its language?"),
                "text" if !prints => say("what prints this?"),
                "rust" | "sh" | "text" => {}
                // The tests of the package run these.
                "python" => {}
                _ => say("nothing runs a block of this language: rust, sh, schema, python or text"),
            }
            prints = matches!(block.language.as_str(), "rust" | "sh");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed: Vec<_> = not_run.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(listed, NOT_RUN, "blocks that aren't run");
}
