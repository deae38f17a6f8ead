//! Differences between a file's schema and a program's.

use annals_schema::{first_difference, parse};

const FILE: &str = "create_table city\nadd_field city name string\ncreate_index i city name\n";

/// Gives what is said of the difference between `FILE` and a program.
fn difference(program: &str) -> Option<String> {
    let parse = |text| parse(text).unwrap().schema;
    first_difference(&parse(FILE), &parse(program)).map(|difference| difference.to_string())
}

#[test]
fn equal_but_for_the_order_of_indexes() {
    assert_eq!(difference(FILE), None);
    let file = "create_table t\nadd_field t a int8\ncreate_index i t a\nadd_field t b int8\n\
        create_index j t b";
    let program = "create_table t\nadd_field t a int8\nadd_field t b int8\ncreate_index j t b\n\
        create_index i t a";
    let parse = |text| parse(text).unwrap().schema;
    assert_eq!(first_difference(&parse(file), &parse(program)), None);
}

#[test]
fn the_first_line_that_differs_is_shown() {
    let program = "create_table city\nadd_field city name bytes\ncreate_index i city name\n";
    assert_eq!(
        difference(program).unwrap(),
        "the schemas differ in command 2 of tables and fields\n\
         the file has:    add_field city name string\n\
         the program has: add_field city name bytes"
    );
    assert_eq!(
        difference("create_table city").unwrap(),
        "the schemas differ in command 2 of tables and fields\n\
         the file has:    add_field city name string\n\
         the program has: nothing more"
    );
    assert!(
        difference(&format!("{FILE}create_table more"))
            .unwrap()
            .ends_with("the file has:    nothing more\nthe program has: create_table more")
    );
}

#[test]
fn indexes_differ_by_name_and_content() {
    let tables = "create_table city\nadd_field city name string\n";
    assert!(difference(tables).unwrap().ends_with(
        "in an index\nthe file has:    create_index i city name\n\
             the program has: no such index"
    ));
    assert!(difference(&format!("{tables}create_unique_index i city name")).unwrap().ends_with(
        "in an index\nthe file has:    create_index i city name\n\
             the program has: create_unique_index i city name"
    ));
}
