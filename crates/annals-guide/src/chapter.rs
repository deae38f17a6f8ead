//! A chapter: what of its Markdown is code, and where its links lead.

use std::fs;
use std::path::Path;

/// A file of the book.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its name without `.md`.
    pub name: String,
    /// Its code blocks, in order.
    pub blocks: Vec<Block>,
    /// Its links, in order.
    pub links: Vec<Link>,
    /// Its headings, as [`slug`]s.
    pub headings: Vec<String>,
}

/// A fenced block of code.
#[derive(Clone, Debug)]
pub struct Block {
    /// The line of its first fence, from 1 on.
    pub line: usize,
    /// The word after the fence.
    pub language: String,
    /// What follows that word.
    pub note: String,
    /// Its lines.
    pub text: String,
}

/// A link, or a picture.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its line, from 1 on.
    pub line: usize,
    /// Where it leads, as it is written.
    pub target: String,
}

impl Block {
    /// Returns why it is only shown, if so.
    #[must_use]
    pub fn not_run(&self) -> Option<&str> {
        self.note.strip_prefix("not run: ")
    }
}

impl Chapter {
    /// Reads the Markdown of a chapter.
    ///
    /// # Panics
    /// A block isn't closed.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Self {
        let mut chapter = Self {
            name: name.to_owned(),
            blocks: Vec::new(),
            links: Vec::new(),
            headings: Vec::new(),
        };
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let Some(info) = line.trim_start().strip_prefix("```") else {
                if let Some(heading) = line.strip_prefix('#') {
                    chapter.headings.push(slug(heading.trim_start_matches('#').trim()));
                }
                let links =
                    targets(line).map(|target| Link { line: at + 1, target: target.to_owned() });
                chapter.links.extend(links);
                continue;
            };
            let (language, note) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
            let mut text = String::new();
            loop {
                match lines.next() {
                    None => panic!("{name}.md:{}: the block isn't closed", at + 1),
                    Some((_, line)) if line.trim() == "```" => break,
                    Some((_, line)) => text = text + line + "\n",
                }
            }
            let (language, note) = (language.to_owned(), note.to_owned());
            chapter.blocks.push(Block { line: at + 1, language, note, text });
        }
        chapter
    }
}

/// Reads all chapters of a folder, in the order of their names; `SUMMARY.md` is none.
pub(crate) fn read_all(folder: &Path) -> Vec<Chapter> {
    let fail = |what: &Path, error| -> ! { panic!("{}: {error}", what.display()) };
    let entries = fs::read_dir(folder).unwrap_or_else(|error| fail(folder, error));
    let mut chapters = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_some_and(|ending| ending == "md") && name != "SUMMARY" {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| fail(&path, error));
            chapters.push(Chapter::parse(&name, &text));
        }
    }
    chapters.sort_by(|a, b| a.name.cmp(&b.name));
    chapters
}

/// Returns what a heading is called in a link: `#what-it-costs`.
#[must_use]
pub fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the targets of `[text](target)` in a line, but for those in `code`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let is_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    let starts = line.match_indices("](").map(|(at, _)| at).filter(move |&at| !is_code(at));
    starts.filter_map(move |at| Some(line.get(at + 2..)?.split_once(')')?.0))
}
