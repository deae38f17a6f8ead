//! Files of released formats, which every later version must read.
//!
//! `fixtures/v1-NAME.annals` is a journal, `fixtures/v1-NAME.txt` what it holds. They are never
//! written again; `UPDATE=1` only writes those that are missing.

use std::fs;
use std::path::PathBuf;

use annals::{Level, Reader, Recovery};
use annals_tools::{inspect_in, scan_in};

use super::journals::{Log, NAME, dump, install, open, write};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(name)
}

/// Says all that a journal holds: the checkpoints, the log and the state.
fn describe(bytes: &[u8]) -> String {
    let directory = install(bytes);
    let inspection = inspect_in(&annals::Options::new(), &*directory, NAME).unwrap();
    let mut log = Log::default();
    scan_in(&annals::Options::new(), &*directory, NAME, &mut log).unwrap();
    let reader = Reader::open(&*directory, NAME).unwrap();
    let state = dump(&reader.read());
    let database = open(&directory, Recovery::Checked, 1).unwrap();
    assert_eq!(dump(&database.read()), state, "reading only and opening agree");
    format!(
        "format {}, id {:02x?}, created {}\nend {:?}, hard {}, closed {}\n\n{}\n{state}",
        inspection.head.header.version,
        inspection.head.header.journal_id,
        inspection.head.header.created,
        inspection.end,
        inspection.hard,
        inspection.is_closed(),
        log.after.last().unwrap(),
    )
}

#[test]
fn the_files_of_version_1_are_read() {
    use Level::{Checksummed as C, Soft as S};
    for (name, journal) in [
        ("v1-closed", write("v1-closed", 1001, &[C, C, S, C, S, C], Some(1), true)),
        ("v1-unclean", write("v1-unclean", 1002, &[C, S, C, S, C, S], None, false)),
        ("v1-all", write("v1-all", 1003, &[C, C, S, C, S, C, S, C, S], Some(7), true)),
    ] {
        let (file, text) = (path(&format!("{name}.annals")), path(&format!("{name}.txt")));
        if std::env::var_os("UPDATE").is_some() && !file.exists() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &journal.bytes).unwrap();
            fs::write(&text, describe(&journal.bytes)).unwrap();
        }
        let bytes = fs::read(&file).unwrap();
        let expected = fs::read_to_string(&text).unwrap();
        let found = describe(&bytes);
        assert!(found == expected, "{name}: now it holds\n{found}");
        // While the version is the same, what is written is the same too, but for the pid in the
        // live block of a journal that isn't closed.
        if bytes.len() != journal.bytes.len() || bytes[16384..] != journal.bytes[16384..] {
            panic!("{name}: the same changes give other frames than in version 1");
        }
    }
}
