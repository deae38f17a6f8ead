//! What makes a new database leaves just that: nothing of its temporary name lies beside it.

use std::fmt::Write as _;

use crate::program::succeed;

#[test]
fn nothing_lies_beside_what_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    // So long that closing makes an image.
    let mut script = "create_table t\nadd_field t text string\n".to_owned();
    for row in 0..20_000 {
        writeln!(script, "insert t \"{row} {}\"", "x".repeat(100)).unwrap();
    }
    succeed(dir, &["shell", "a"], &script);
    for what in [
        &["export", "joedb", "a", "joedb"][..],
        &["export", "json", "a", "json"],
        &["import", "joedb", "joedb", "of-joedb"],
        &["import", "json", "json", "of-json"],
        &["merge", "merged", "a", "of-json"],
        &["pack", "a", "packed"],
        &["backup", "a", "backup"],
        &["push", "a", "pushed"],
        &["recover", "a", "--salvage", "salvaged"],
    ] {
        succeed(dir, what, "");
    }
    let list = std::fs::read_dir(dir).unwrap();
    let list: Vec<_> = list.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(list.iter().any(|name| name == "a-image"), "{list:?}: closing made no image");
    let left: Vec<_> = list.iter().filter(|name| name.contains('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}
