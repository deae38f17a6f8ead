//! Files of the shapes that joedb's have: a script that builds the schema, and the options of its
//! compiler.

use annals_schema::{Ignored, SchemaFile, parse, parse_files};

fn both(script: &str, options: &str) -> SchemaFile {
    parse_files(&[("s.joedbi", script), ("s.joedbc", options)]).unwrap()
}

#[test]
fn nested_namespace_keywords_and_a_table_without_fields() {
    let file = both(
        "echo off\n\ncreate_table delete\nadd_field delete for int32\nadd_field delete while \
         int32\ncreate_table nothing\n",
        "namespace outer::is_nested::db\ncreate_unique_index return delete while\n\
         generate_c_wrapper\n",
    );
    assert_eq!(file.namespace.as_deref(), Some("outer::is_nested::db"));
    assert_eq!(
        file.schema.to_text(),
        "create_table delete\nadd_field delete for int32\nadd_field delete while int32\n\
         create_table nothing\ncreate_unique_index return delete while\n"
    );
    assert_eq!(file.ignored, []);
}

#[test]
fn rows_of_a_script_are_not_the_schemas() {
    let file = both(
        "create_table settings\ninsert_into settings 1\nadd_field settings dark boolean = true\n\
         add_field settings host string = \"example.org\"\nupdate settings 1 dark false\n\
         delete_from settings 1\ncomment \"not # a comment\"\ntimestamp\nvalid_data\n",
        "namespace settings\nset_single_row settings true\n",
    );
    assert_eq!(
        file.schema.to_text(),
        "create_table settings\nadd_field settings dark bool default true\n\
         add_field settings host string default \"example.org\"\nset_single_row settings true\n"
    );
    assert!(file.schema.tables()[0].single_row);
    let lines: Vec<_> = file.ignored.iter().map(|ignored| ignored.line).collect();
    assert_eq!(lines, [2, 5, 6, 7, 8, 9]);
    let Ignored { file, command, .. } = &file.ignored[0];
    assert_eq!((file.as_str(), command.as_str()), ("s.joedbi", "insert_into"));
}

#[test]
fn unordered_indexes_are_taken_as_ordered_ones() {
    let file = both(
        "create_table city\ncreate_table person\nadd_field person first string\nadd_field person \
         last string\nadd_field person home references city\n",
        "create_unordered_unique_index by_full_name person first,last,home\n\
         create_unordered_index by_name person last\ncreate_index by_home person home\n",
    );
    let indexes: Vec<_> =
        file.schema.indexes().iter().map(|index| (index.name.as_str(), index.unique)).collect();
    assert_eq!(indexes, [("by_full_name", true), ("by_name", false), ("by_home", false)]);
    assert!(file.schema.to_text().contains("\ncreate_unique_index by_full_name person first"));
}

#[test]
fn upgrades_with_custom_functions_and_options_of_cpp() {
    let file = both(
        "create_table person\nadd_field person name string\ncreate_table language\nadd_field \
         language id string\n# the next version\nadd_field person preferred references language\n\
         custom set_default_language\nadd_field person height float32\nadd_field person photo \
         blob\n",
        "namespace v2\ncreate_unique_index language_by_id language id\n\
         set_table_null_initialization person true\nset_table_storage language vector\n",
    );
    assert_eq!(file.schema.commands().len(), 9);
    assert!(file.schema.to_text().contains("\ncustom set_default_language\n"));
}

#[test]
fn a_script_may_drop_and_rename() {
    let schema = parse(
        "create_table a\nadd_field a x int8\nadd_field a y int8\nrename_table a b\n\
         rename_field b x z\ndrop_field b y\ncreate_table c\ndrop_table c\n",
    );
    let schema = schema.unwrap().schema;
    assert_eq!(schema.tables().len(), 1);
    assert_eq!(schema.tables()[0].fields[0].name, "z");
}
