//! A journal of three segments in the released format, which every later version must read. It is never
//! written again; `UPDATE=1` only writes it if it is missing.

use std::fs;
use std::path::PathBuf;

use annals::Reader;
use annals::reports::Older;
use annals::storage::MemoryDirectory;

use super::opening::{bytes, put};
use super::{NAME, NOW, content, define, history, open, write};

const FILES: [&str; 3] = ["", "-segment-000000", "-segment-000001"];

fn path(end: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    folder.join(format!("v1-segments{end}"))
}

/// Makes the journal: the newest segment begins with the state.
fn make() -> MemoryDirectory {
    let directory = MemoryDirectory::new();
    let database = open(&directory);
    database.write(define).unwrap();
    for (numbers, older) in [(0..1, Older::Kept), (5..6, Older::NotNeeded)] {
        write(&database, numbers);
        database.write(|tx| tx.write_blob(&b"no row leads to it"[..]).map(drop)).unwrap();
        assert!(database.restart(older, NOW).unwrap().is_new);
    }
    write(&database, 10..11);
    database.close().unwrap();
    directory
}

#[test]
fn the_segments_of_version_1_are_read() {
    let made = make();
    let describe = |directory: &MemoryDirectory| {
        let reader = Reader::open(directory, NAME).unwrap();
        format!("{}\n{}", content(&reader.read()), history(directory))
    };
    if std::env::var_os("UPDATE").is_some() && !path(".annals").exists() {
        for end in FILES {
            fs::write(path(&format!(".annals{end}")), bytes(&made, &format!("{NAME}{end}")))
                .unwrap();
        }
        fs::write(path(".txt"), describe(&made)).unwrap();
    }
    let kept = MemoryDirectory::new();
    for end in FILES {
        let (name, file) =
            (format!("{NAME}{end}"), fs::read(path(&format!(".annals{end}"))).unwrap());
        put(&kept, &name, &file);
        let now = bytes(&made, &name);
        assert!(now[16_384..] == file[16_384..], "{name}: the same changes give other frames");
    }
    let expected = fs::read_to_string(path(".txt")).unwrap();
    let found = describe(&kept);
    assert!(found == expected, "now it holds\n{found}");
    assert_eq!(content(&open(&kept).read()), content(&open(&made).read()));
}
