//! What is exported and imported again is the same, and what comes from elsewhere loses nothing.

#[cfg(feature = "arrow")]
mod columnar;
mod foreign;
#[cfg(all(feature = "sqlite", unix))]
mod media;
mod same;
#[cfg(feature = "sqlite")]
mod sqlite;
mod whole;

use std::path::Path;

use self::same::{Kept, compare};
use crate::identity;
use crate::program::{run, succeed};

/// The formats, and what they keep of a schema.
const FORMATS: [(&str, Kept); 4] = [
    ("json", Kept::Everything),
    ("ndjson", Kept::Everything),
    ("csv", Kept::Everything),
    ("sqlite", Kept::TheRest),
];

fn formats() -> impl Iterator<Item = (&'static str, Kept)> {
    FORMATS.into_iter().filter(|(format, _)| cfg!(feature = "sqlite") || *format != "sqlite")
}

/// Exports and imports; returns the new database's name.
fn there_and_back(dir: &Path, format: &str) -> String {
    let (out, back) = (format!("out.{format}"), format!("{format}.annals"));
    // SQLite's export tells what SQLite can't know.
    for arguments in [["export", format, "first.annals", &out], ["import", format, &out, &back]] {
        let output = run(dir, &arguments, b"");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {errors}");
        let allowed = |line: &str| format == "sqlite" && line.contains("it always has one row");
        assert!(errors.lines().all(allowed), "{arguments:?}: {errors}");
    }
    back
}

#[test]
fn export_and_import_give_the_same_database() {
    let full = std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full");
    for seed in 1000..if full { 3000 } else { 1060 } {
        let dir = tempfile::tempdir().unwrap().keep();
        println!("seed {seed} in {}", dir.display());
        let script = identity::script(seed);
        succeed(&dir, &["shell", "first.annals"], &script);
        for (format, kept) in formats() {
            let back = there_and_back(&dir, format);
            compare(&dir.join("first.annals"), &dir.join(&back), kept);
            assert!(succeed(&dir, &["check", &back], "").starts_with("ok: "), "{back}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn erased_values_come_back_as_such() {
    let script = "create_table t\nadd_field t s string\nadd_field t x int32\nadd_field t r references t\n\
        add_field t b bool\ncreate_unique_index by_s t s\ninsert t \"\" 1 0 true\ninsert t b 2 1 true\n\
        insert t c 3 null false\ncommit\n";
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "first.annals"], script);
    for erased in [&["1"][..], &["2", "--field", "s"]] {
        succeed(dir.path(), &[&["erase", "first.annals", "t", "--yes"], erased].concat(), "");
    }
    let dump = succeed(dir.path(), &["dump", "first.annals"], "");
    assert!(dump.contains("insert_at t 1 null! null! null null!\n"), "{dump}");
    for (format, _) in formats().filter(|(format, _)| *format != "sqlite") {
        let back = there_and_back(dir.path(), format);
        assert_eq!(succeed(dir.path(), &["dump", &back], ""), dump, "{format}");
    }
    // Null is nobody's word for anything else.
    let path = dir.path().join("out.ndjson");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace(r#","erased":[["t","s"],["t","x"],["t","b"]]"#, "")).unwrap();
    let refused = run(dir.path(), &["import", "ndjson", "out.ndjson", "refused.annals"], b"");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn floats_and_integers_come_back_bit_by_bit() {
    let mut script = String::from(
        "create_table t\nadd_field t x float64\nadd_field t y float32\nadd_field t i int64\nadd_field t u uint64\n",
    );
    let mut state = 1_u64;
    let mut special = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, 5e-324, f64::MAX].into_iter();
    for _ in 0..3000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = state ^ (state >> 29);
        let x = special.next().unwrap_or(f64::from_bits(bits));
        let y = f32::from_bits(u32::try_from(bits >> 32).unwrap());
        let text = |text: String| text.replace("NaN", "nan");
        let (x, y) = (text(format!("{x:?}")), text(format!("{y:?}")));
        script += &format!("insert t {x} {y} {} {bits}\n", bits.cast_signed());
    }
    let dir = tempfile::tempdir().unwrap();
    succeed(dir.path(), &["shell", "first.annals"], &script);
    for (format, kept) in formats() {
        let back = there_and_back(dir.path(), format);
        compare(&dir.path().join("first.annals"), &dir.path().join(back), kept);
    }
}

#[test]
fn large_blobs_and_texts_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: String = (0..300_000_u32).map(|byte| format!("{:02x}", byte % 251)).collect();
    let script = format!(
        "create_table t\nadd_field t b blob\nadd_field t s string\nwrite_blob 0x{bytes}\n\
         insert t blob:1 \"{bytes}\"\nwrite_blob \"\"\ninsert t blob:2 \"\"\ninsert t null \"x\"\n"
    );
    succeed(dir.path(), &["shell", "first.annals"], &script);
    for (format, kept) in formats() {
        let back = there_and_back(dir.path(), format);
        compare(&dir.path().join("first.annals"), &dir.path().join(back), kept);
    }
}
