//! Words of SQL, of Rust and of other programs, and what to write instead of them.

/// Each mend, and the words in small letters that it is for.
pub(super) type Words = [(&'static str, &'static [&'static str])];

/// Returns the mend for a word.
pub(super) fn find(words: &Words, wrong: &str) -> Option<&'static str> {
    let wrong = wrong.to_ascii_lowercase();
    words.iter().find(|(_, others)| others.contains(&wrong.as_str())).map(|(mend, _)| *mend)
}

/// Types.
pub(super) const TYPES: &Words = &[
    ("blob", &["longblob", "mediumblob", "tinyblob"]),
    ("bool", &["bit", "boolean"]),
    ("bytes", &["binary", "bytea", "varbinary", "vec<u8>"]),
    ("bytes(16)", &["fixed"]),
    ("decimal(2)", &["currency", "decimal", "money", "numeric"]),
    ("float32", &["f32", "float4"]),
    ("float64", &["double", "f64", "float", "float8", "real"]),
    ("int8", &["i8", "tinyint"]),
    ("int16", &["i16", "int2", "short", "smallint"]),
    ("int32", &["i32", "int4", "mediumint"]),
    ("int64", &["bigint", "i64", "int", "integer", "isize", "long", "number"]),
    ("json", &["jsonb", "object"]),
    ("string", &["&str", "char", "character", "clob", "nvarchar", "str", "text", "varchar"]),
    ("timestamp", &["datetime", "instant", "time", "timestamptz"]),
    ("uint8", &["byte", "u8"]),
    ("uint16", &["u16"]),
    ("uint32", &["u32"]),
    ("uint64", &["u64", "uint", "unsigned", "usize"]),
    ("uuid", &["guid"]),
];

/// Words after a type, or instead of one. The mend is a sentence.
pub(super) const OPTIONS: &Words = &[
    (
        "each row has an id already: leave this out, or write \
         `create_unique_index NAME TABLE FIELD` in a line below",
        &[
            "auto_increment",
            "autoincrement",
            "bigserial",
            "identity",
            "primary",
            "primary_key",
            "serial",
        ],
    ),
    (
        "for distinct values, write `create_unique_index NAME TABLE FIELD` in a line below",
        &["distinct", "unique"],
    ),
    ("write `create_index NAME TABLE FIELD` in a line below", &["index", "indexed"]),
    ("write `null`", &["nullable", "optional"]),
    ("write `references TABLE` instead of the type", &["foreign", "foreign_key", "references"]),
    (
        "only a field that `references` a table has a rule: `restrict`, `cascade` or `set_null`",
        &["on"],
    ),
];

/// Commands. Two words of SQL are one here, with `_` between them.
pub(super) const COMMANDS: &Words = &[
    ("create_table", &["add_table", "new_table", "table"]),
    ("drop_table", &["delete_table", "remove_table"]),
    ("add_field", &["add_column", "column", "create_column", "create_field", "field"]),
    ("drop_field", &["delete_column", "delete_field", "drop_column", "remove_field"]),
    ("rename_field", &["rename_column"]),
    ("create_index", &["add_index", "add_key", "index"]),
    (
        "create_unique_index",
        &["add_unique", "add_unique_index", "create_unique", "unique", "unique_index"],
    ),
    ("drop_index", &["delete_index", "remove_index"]),
    ("add_field`, `rename_field` or `drop_field", &["alter_column", "alter_field", "alter_table"]),
];
