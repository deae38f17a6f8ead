//! Mistakes in schema files, as they are shown: each `NAME.txt.in` against `NAME.txt`, which
//! `UPDATE=1` rewrites.

use std::fs;

use annals_schema::{parse, parse_command, parse_files, render_all, tokenize};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden");
const FILES: [&str; 3] = ["mistakes", "evolution", "newcomer"];

fn source(name: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{name}.txt.in")).unwrap()
}

#[test]
fn all_mistakes_of_a_file_are_shown_with_place_and_hint() {
    for name in FILES {
        let path = format!("{FOLDER}/{name}.txt");
        let mistakes = parse(&source(name)).unwrap_err();
        let rendered = render_all(&mistakes, &format!("{name}.schema")) + "\n";
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &rendered).unwrap();
        }
        assert_eq!(rendered, fs::read_to_string(&path).unwrap());
    }
}

#[test]
fn every_line_that_says_so_is_reported_and_no_other() {
    for name in FILES {
        let source = source(name);
        // A string without an end is wrong, too, and can't say so.
        let expected: Vec<_> = (1..)
            .zip(source.lines())
            .filter(|(_, line)| line.ends_with("# wrong") || line.ends_with("no end"))
            .map(|(number, _)| number)
            .collect();
        let found: Vec<_> =
            parse(&source).unwrap_err().iter().map(|mistake| mistake.line).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn nothing_in_a_file_makes_the_parser_panic() {
    for (name, step) in [("mistakes", 1), ("evolution", 1), ("newcomer", 7)] {
        let source = source(name);
        for (place, _) in source.char_indices().step_by(step) {
            let _either = parse(&source[..place]);
            let _either = parse(&source[place..]);
            let mut changed = source.clone();
            changed.insert(place, '"');
            let _either = parse(&changed);
        }
    }
}

#[test]
fn a_misspelt_command_hides_nothing_but_what_follows_from_it() {
    let schema = "create_table a\nadd_feild a x string\ncreate_table a\n\
                  create_table b\ncreate_indx i b y\ncreate_index i b z\ndrop_index i\ndrop_index j\n\
                  add_feild b q string\ndrop_table b\nadd_field b w bool\n";
    let lines = parse(schema).unwrap_err().iter().map(|mistake| mistake.line).collect::<Vec<_>>();
    // Line 7 follows from those before it; all others are wrong by themselves.
    assert_eq!(lines, [2, 3, 5, 6, 8, 9, 11]);
}

#[test]
fn mistakes_of_several_files_name_their_file() {
    let schema = "create_table a\nrename_table a b\ncreate_tabel c\n";
    let options = "namespace n\ncreate_index i a x\nset_single_row c true\n";
    let mistakes = parse_files(&[("s.joedbi", schema), ("s.joedbc", options)]).unwrap_err();
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "s.joedbi: line 3, column 1: there is no command `create_tabel`; did you mean \
             `create_table`?",
            "s.joedbc: line 2, column 16: there is no table `a`; table `a` was renamed to `b` in \
             line 2 of s.joedbi",
        ]
    );
    assert!(render_all(&mistakes, "other").contains("--> s.joedbc:2:16\n"));
    let files = [("one", "create_index i a x\n"), ("two", "create_table a\nadd_field a x int8\n")];
    let mistakes = parse_files(&files).unwrap_err();
    let hint = "table `a` is created in line 1 of two, below: move this line after that one";
    assert_eq!(mistakes[0].hint.as_deref(), Some(hint));
    let again = parse_files(&[("one", "namespace a"), ("two", "namespace b")]).unwrap_err();
    assert_eq!((&*again[0].file, again[0].line), ("two", 1));
}

#[test]
fn the_shell_is_told_what_became_of_a_name() {
    let schema = parse(
        "create_table a\nadd_field a x int8\nrename_field a x y\nrename_table a b\n\
         rename_table b c\ncreate_index i c y\ndrop_index i",
    );
    let schema = schema.unwrap().schema;
    let hint = |line: &str| parse_command(&schema, &tokenize(line).unwrap()).unwrap_err().hint;
    let of_table = "table `a` was renamed to `b`, which was renamed to `c`";
    assert_eq!(hint("drop_table a").as_deref(), Some(of_table));
    assert_eq!(hint("drop_field c x").as_deref(), Some("field `x` was renamed to `y`"));
    assert_eq!(hint("drop_index i").as_deref(), Some("index `i` was dropped"));
}

#[test]
fn a_long_word_is_no_slip_and_isnt_repeated_whole() {
    let long = "a".repeat(1_000_000);
    let fields = (0..100).map(|n| format!("add_field t f{n} int64\n")).collect::<String>();
    let text = format!("create_table t\n{fields}{long}x\nadd_field t {long} int64\n");
    let text =
        format!("{text}create_index i t {long}y\nadd_field t a {long}\ncreate_table t {long}\n");
    let mistakes = annals_schema::parse(&text).unwrap_err();
    assert_eq!(mistakes.len(), 5);
    for mistake in &mistakes {
        assert!(mistake.to_string().len() < 600, "{mistake}");
        assert!(mistake.text.len() < 100);
    }
    let drawn = annals_schema::render_all(&mistakes, "t.schema");
    assert!(drawn.len() < 5_000, "{}", drawn.len());
    let list = &mistakes[2].to_string();
    assert!(list.contains("`f29`, ..") && !list.contains("`f30`"), "{list}");
}

#[test]
fn the_caret_of_a_long_line_stands_below_its_text() {
    let text = format!(
        "create_table t\nadd_field t {} int64 wrong # {}",
        "b".repeat(200),
        "c".repeat(900)
    );
    let mistakes = annals_schema::parse(&text).unwrap_err();
    let drawn = annals_schema::render_all(&mistakes, "t.schema");
    let lines: Vec<&str> = drawn.lines().collect();
    let caret = lines[4].find('^').unwrap();
    assert_eq!(&lines[3][caret..caret + 7], "wrong #", "{drawn}");
    assert!(lines[3].len() < 300, "{drawn}");
}
