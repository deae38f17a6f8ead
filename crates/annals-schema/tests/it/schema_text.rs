//! Schema text into schemas and back.

use std::fs;
use std::path::Path;

use annals_schema::{Command, Schema, TableNumber, parse, parse_command, tokenize};

#[test]
fn parsing_the_canonical_text_gives_the_schema_again() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let mut count = 0;
    for entry in fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "schema") {
            let schema = parse(&fs::read_to_string(&path).unwrap()).unwrap().schema;
            let text = schema.to_text();
            let again = parse(&text).unwrap().schema;
            assert_eq!(again, schema, "{}", path.display());
            assert_eq!(again.to_text(), text, "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 4, "the golden schemas are there");
}

#[test]
fn spellings_become_canonical() {
    let text = "\u{feff}namespace a::b // nested\r\n\
        create_table T # a table\n\n\
        add_field T a boolean = 1\n\
        add_field T b int8 default 5 null\n\
        add_field T c references T null\n\
        add_field T d string =\"x\"\n\
        create_index i T a , b\n\
        create_unique_index j T a,b ,c\n";
    let file = parse(text).unwrap();
    assert_eq!(file.namespace.as_deref(), Some("a::b"));
    assert_eq!(
        file.schema.to_text(),
        "create_table T\n\
         add_field T a bool default true\n\
         add_field T b int8 null default 5\n\
         add_field T c references T\n\
         add_field T d string default \"x\"\n\
         create_index i T a,b\n\
         create_unique_index j T a,b,c\n"
    );
}

#[test]
fn single_commands_are_for_the_shell() {
    let mut schema = Schema::default();
    let parse = |schema: &Schema, line: &str| parse_command(schema, &tokenize(line).unwrap());
    assert_eq!(parse(&schema, ""), Ok(None));
    assert_eq!(parse(&schema, "insert city 1"), Ok(None));
    assert_eq!(parse(&schema, "\"create_table\" x"), Ok(None));
    let command = parse(&schema, "create_table city").unwrap().unwrap();
    assert_eq!(command, Command::CreateTable { name: "city".to_owned() });
    schema.apply(command).unwrap();
    let error = parse(&schema, "create_table city").unwrap_err().at(7, "create_table city");
    assert_eq!(
        error.to_string(),
        "line 7, column 14: the name \"city\" is in use already; choose another name"
    );
    let unknown = Command::CreateIndex {
        name: "i".to_owned(),
        table: TableNumber(3),
        fields: Vec::new(),
        unique: false,
    };
    assert_eq!(schema.command_text(&unknown), "create_index i ? ");
    assert!(schema.apply(unknown).is_err());
}
