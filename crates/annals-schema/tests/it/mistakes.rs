//! Mistakes in schema files, as they are shown: `mistakes.schema` against `mistakes.txt`, which
//! `UPDATE=1` rewrites.

use std::fs;

use annals_schema::{parse, render_all};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden");

#[test]
fn all_mistakes_of_a_file_are_shown_with_place_and_hint() {
    let path = format!("{FOLDER}/mistakes.txt");
    let source = fs::read_to_string(format!("{FOLDER}/mistakes.txt.in")).unwrap();
    let rendered = render_all(&parse(&source).unwrap_err(), "mistakes.schema") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &rendered).unwrap();
    }
    assert_eq!(rendered, fs::read_to_string(&path).unwrap());
}

#[test]
fn every_line_that_says_so_is_reported_and_no_other() {
    let source = fs::read_to_string(format!("{FOLDER}/mistakes.txt.in")).unwrap();
    let expected: Vec<_> = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.ends_with("# wrong"))
        .map(|(number, _)| number)
        .chain([source.lines().count()])
        .collect();
    let found: Vec<_> = parse(&source).unwrap_err().iter().map(|mistake| mistake.line).collect();
    assert_eq!(found, expected);
}

#[test]
fn nothing_in_a_file_makes_the_parser_panic() {
    let source = fs::read_to_string(format!("{FOLDER}/mistakes.txt.in")).unwrap();
    for (place, _) in source.char_indices() {
        let _either = parse(&source[..place]);
        let _either = parse(&source[place..]);
        let mut changed = source.clone();
        changed.insert(place, '"');
        let _either = parse(&changed);
    }
}
