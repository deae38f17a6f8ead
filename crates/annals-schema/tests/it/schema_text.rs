//! Schema text into schemas and back.

use std::fs;
use std::path::Path;

use annals_schema::{
    Collated, Command, FieldNumber, Schema, SchemaError, TableNumber, parse, parse_command,
    render_all, tokenize,
};

#[test]
fn parsing_the_canonical_text_gives_the_schema_again() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../annals-codegen/tests/it/golden");
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
        add_field T e references T cascade required =3\n\
        add_field T f references T required\n\
        add_field T d string =\"x\"\n\
        add_field T desc int8\n\
        create_index i T a , b\n\
        create_unique_index j T a,b desc ,c\n\
        create_index k T desc desc,a desc\n\
        create_index l T a,desc\n";
    let file = parse(text).unwrap();
    assert_eq!(file.namespace.as_deref(), Some("a::b"));
    assert_eq!(
        file.schema.to_text(),
        "create_table T\n\
         add_field T a bool default true\n\
         add_field T b int8 null default 5\n\
         add_field T c references T\n\
         add_field T e references T cascade required default 3\n\
         add_field T f references T required\n\
         add_field T d string default \"x\"\n\
         add_field T desc int8\n\
         create_index i T a,b\n\
         create_unique_index j T a,b desc,c\n\
         create_index k T desc desc,a desc\n\
         create_index l T a,desc\n"
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
        descending: Vec::new(),
        collated: Vec::new(),
        unique: false,
    };
    assert_eq!(schema.command_text(&unknown), "create_index i ? ");
    assert!(schema.apply(unknown).is_err());
}

#[test]
fn descending_fields_are_some_of_the_index_in_its_order() {
    let text = "create_table T\nadd_field T a bool\nadd_field T b bool\nadd_field T c bool\n";
    let schema = parse(text).unwrap().schema;
    let works = |descending: &[u32]| {
        let (name, fields) = ("i".to_owned(), [1, 0].map(FieldNumber).to_vec());
        let descending = descending.iter().copied().map(FieldNumber).collect();
        let table = TableNumber(0);
        let (collated, unique) = (Vec::new(), true);
        schema.clone().apply(Command::CreateIndex {
            name,
            table,
            fields,
            descending,
            collated,
            unique,
        })
    };
    for good in [&[][..], &[0], &[1], &[1, 0]] {
        works(good).unwrap();
    }
    for bad in [&[2][..], &[0, 1], &[1, 1]] {
        assert_eq!(works(bad), Err(SchemaError::BadIndex("i".to_owned())), "{bad:?}");
    }
}

#[test]
fn collations_are_read_and_written() {
    let text =
        "create_table T\nadd_field T a string\nadd_field T b string null\nadd_field T c bytes\n";
    let with = |line: &str| parse(&format!("{text}{line}\n"));
    for (line, written) in [
        ("create_index i T a collate DE-u-KS-level2", "create_index i T a collate de-u-ks-level2"),
        (
            "create_unique_index i T b collate \"sv\" desc , a collate und desc,c",
            "create_unique_index i T b collate sv desc,a collate und desc,c",
        ),
    ] {
        let schema = with(line).unwrap().schema;
        assert_eq!(schema.lines().last().unwrap(), written);
        assert_eq!(with(written).unwrap().schema, schema);
    }
    for (line, expected) in [
        ("create_index i T c collate de", "field `c` is no string"),
        ("create_index i T a collate", "a locale"),
        ("create_index i T a collate german", "`german` is no language"),
        ("create_index i T a desc collate de", "`collate` doesn't belong here"),
    ] {
        let error = render_all(&with(line).unwrap_err(), "t.schema");
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn collated_fields_are_strings_of_the_index_in_its_order() {
    let text = "create_table T\nadd_field T a string\nadd_field T b string\nadd_field T c json\n";
    let schema = parse(text).unwrap().schema;
    let apply = |collated: &[(u32, &str)]| {
        let collate = |&(field, locale): &(u32, &str)| {
            let (field, locale) = (FieldNumber(field), locale.to_owned());
            Collated { field, locale, version: "1".to_owned() }
        };
        let (name, fields) = ("i".to_owned(), [1, 0, 2].map(FieldNumber).to_vec());
        let (collated, table) = (collated.iter().map(collate).collect(), TableNumber(0));
        let descending = Vec::new();
        let unique = false;
        schema.clone().apply(Command::CreateIndex {
            name,
            table,
            fields,
            descending,
            collated,
            unique,
        })
    };
    for good in [&[][..], &[(0, "de")], &[(1, "de"), (0, "und-u-kn")]] {
        apply(good).unwrap();
    }
    for bad in [&[(0, "de"), (1, "de")][..], &[(0, "de"), (0, "sv")], &[(3, "de")]] {
        assert_eq!(apply(bad), Err(SchemaError::BadIndex("i".to_owned())), "{bad:?}");
    }
    for bad in [(2, "de"), (0, "DE"), (0, "german"), (0, "")] {
        assert!(matches!(apply(&[bad]), Err(SchemaError::BadCollation(..))), "{bad:?}");
    }
}

#[test]
fn only_a_reference_that_can_stay_is_required() {
    for (line, expected) in [
        ("references T set_null required", "a required reference can't be set to null"),
        ("references T required null", "`null`"),
        ("references T required required", "`required`"),
        ("references T required restrict", "`restrict`"),
        ("references T required default null", "the default is null"),
        ("int8 required", "`required`"),
    ] {
        let text = format!("create_table T\nadd_field T a {line}\n");
        let error = render_all(&parse(&text).unwrap_err(), "t.schema");
        assert!(error.contains(expected), "{line}: {error}");
    }
}

/// A schema file is a script for the shell, too, as with `namespace`.
#[test]
fn the_shell_ignores_the_type_of_the_program_but_not_a_wrong_path() {
    let schema = parse("create_table city").unwrap().schema;
    let command = |line: &str| parse_command(&schema, &tokenize(line).unwrap());
    let plain = command("add_field city name string null default as").unwrap();
    let typed = command("add_field city name string null default as as crate::Name").unwrap();
    assert!(plain.is_some());
    assert_eq!(typed, plain);
    let wrong = command("add_field city name string as Name").unwrap_err();
    assert_eq!(wrong.message, "`Name` is not the path of a Rust type");
}
