//! joedb files.

use std::io::Cursor;
use std::sync::Arc;

use annals::Recovery;
use annals::storage::MemoryDirectory;
use annals_joedb::{Choices, Export, Manner, Plan, Until};

use crate::content::content;
use crate::file::{NAME, open};
use crate::memory::peak;
use crate::shell::{log_of, reopen};

/// The length of the head.
const HEAD: usize = 41;
/// How many rows a file may insert as vectors.
const MOST_ROWS: u64 = 256;

/// Takes the bytes for a joedb file: after an even first byte as they are, after an odd one as its entries, of which
/// those count that can be read.
///
/// # Panics
/// If memory grows out of proportion, or what can be imported doesn't come back from the file that it is exported to.
pub fn joedb(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let is_whole = how.is_multiple_of(2);
    let file = if is_whole { rest.to_vec() } else { behind_head(rest) };
    let (imported, taken) = peak(|| import(&file, !is_whole));
    let limit = limit(file.len());
    assert!(taken < limit, "importing {} bytes took {taken}, {limit} are allowed", file.len());
    let Some(first) = imported else { return };
    let exported = export(&first);
    let second = import(&exported, false).expect("what was exported can be imported");
    let logs = [&first, &second].map(|directory| timeless(&log_of(directory)));
    assert_eq!(logs[0], logs[1], "another history");
    let [a, b] = [&first, &second].map(|directory| content(&reopen(directory).read()));
    assert_eq!(a, b, "other rows");
    assert!(export(&second) == exported, "another file");
}

fn import(file: &[u8], to_end: bool) -> Option<Arc<MemoryDirectory>> {
    let directory = Arc::new(MemoryDirectory::new());
    let create = || open(&directory, Recovery::Refuse);
    let until = if to_end { Until::End } else { Until::Checkpoint };
    let choices = Choices { max_rows: Some(MOST_ROWS), until, lossy: false };
    let [mut input, mut ahead] = [file; 2].map(Cursor::new);
    match annals_joedb::import(&mut input, &mut ahead, choices, create) {
        Ok((database, _)) => {
            let closed = database.close();
            assert!(closed.is_ok(), "it can't be closed: {closed:?}");
            Some(directory)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "refused without a word");
            None
        }
    }
}

fn export(directory: &MemoryDirectory) -> Vec<u8> {
    let exported = export_of(directory);
    exported.expect("what was imported can be exported").into_inner()
}

fn export_of(directory: &MemoryDirectory) -> annals::Result<Cursor<Vec<u8>>> {
    let open = || Ok(annals::Options::new().open_read_only_in(directory, NAME)?.read());
    let mut plan = Plan::default();
    annals_tools::scan_in(&annals::Options::new(), directory, NAME, &mut plan)?;
    let manner = Manner { same_bytes: true, ..Manner::default() };
    let output = Cursor::new(Vec::new());
    let mut export = Export::new(output, NAME.to_owned(), plan, manner, &open)?;
    annals_tools::scan_in(&annals::Options::new(), directory, NAME, &mut export)?;
    export.finish().map(|(file, _)| file)
}

/// Returns a log without the times of commits, which are the clock's where the file has no timestamps.
fn timeless(log: &[u8]) -> Vec<String> {
    let lines = String::from_utf8_lossy(log);
    let cut = |line: &str| match line.split_once(" at ") {
        Some((commit, _)) if commit.starts_with("commit ") => commit.to_owned(),
        _ => line.to_owned(),
    };
    lines.lines().map(cut).collect()
}

/// Puts the head of a file in front of entries, which says that all of them count.
fn behind_head(entries: &[u8]) -> Vec<u8> {
    let end = (HEAD + entries.len()) as u64;
    let positions = [HEAD as u64, HEAD as u64, end, end];
    let mut file: Vec<u8> = positions.into_iter().flat_map(u64::to_le_bytes).collect();
    file.extend(5_u32.to_le_bytes());
    file.extend(b"joedb");
    file.extend(entries);
    file
}

/// Returns how much memory a file of so many bytes may take: a row takes a byte of it, and a field four.
fn limit(len: usize) -> usize {
    let rows = len + usize::try_from(MOST_ROWS).unwrap_or(usize::MAX);
    (8 << 20) + 64 * len + 64 * rows * (len / 4)
}
