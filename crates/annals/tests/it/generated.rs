//! Compiles what the generator writes, under lints as strict as a user could set: the golden file
//! of `annals-codegen`, and the macro's output for its other schemas.

#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unsafe_code,
    rust_2018_idioms,
    nonstandard_style,
    missing_copy_implementations,
    missing_debug_implementations,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unused,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::cargo,
    clippy::allow_attributes_without_reason,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_docs_in_private_items,
    clippy::pub_use,
    clippy::shadow_reuse,
    clippy::single_char_lifetime_names
)]
#![allow(
    clippy::cargo_common_metadata,
    clippy::multiple_crate_versions,
    reason = "the workspace's"
)]
#![allow(
    clippy::pub_use,
    clippy::pub_underscore_fields,
    reason = "files allow them themselves; what the macro writes has no attributes"
)]

#[path = "../../../annals-codegen/tests/it/golden/tutorial.rs"]
pub(crate) mod tutorial;

// `compiler` compiles the files of these.
annals::schema!(pub(crate) mod collisions = "../annals-codegen/tests/it/golden/collisions.schema");
annals::schema!(pub(crate) mod evolved = "../annals-codegen/tests/it/golden/evolved.schema");
annals::schema!(pub(crate) mod own = "../annals-codegen/tests/it/golden/own.schema");
annals::schema!(pub(crate) mod types = "../annals-codegen/tests/it/golden/types.schema");
annals::schema!(pub(crate) mod wide = "../annals-codegen/tests/it/golden/wide.schema");

/// What the macro makes of a file in its default module.
mod by_macro {
    annals::schema!("../../examples/airports/airports.schema");
}

use std::mem::size_of;

#[test]
fn ids_take_eight_bytes_and_read_well() {
    assert_eq!(size_of::<tutorial::city::Id>(), 8, "an id is a number");
    let id = tutorial::city::Id::from_u64(7);
    assert_eq!(format!("{id} {id:?} {}", id.as_u64()), "7 city::Id(7) 7", "as it would be written");
    assert_eq!(tutorial::city::Id::from(annals::RowId::from(id)), id, "there and back");
    assert!(id < tutorial::city::Id::from_u64(8), "ordered by number");
}

#[test]
fn an_id_is_read_from_its_number_only() {
    use annals::RowId;
    use tutorial::city::Id;

    for number in [0, 7, RowId::MAX.0] {
        assert_eq!(number.to_string().parse(), Ok(Id::from_u64(number)), "as it is written");
        assert_eq!(Id::from(number).as_u64(), number, "there and back");
    }
    let beyond = (RowId::MAX.0 + 1).to_string();
    for text in
        ["", "+7", "-7", " 7", "7 ", "0x7", "7.0", "seven", &beyond, "9".repeat(99).as_str()]
    {
        let error = text.parse::<Id>().unwrap_err().to_string();
        assert!(error.contains("is not the id of a row of city: write its number"), "{error}");
        assert!(error.len() < 150, "a long text is shortened: {error}");
    }
}

#[test]
fn new_rows_have_the_defaults_of_the_schema() {
    let row = types::nullable::New::default();
    assert_eq!(row.tiny, Some(-128), "declared with `=`");
    assert_eq!((row.small, row.medium, row.truth), (None, None, None), "null unless declared");
    assert_eq!(row.large, Some(i64::MIN), "the smallest");
    assert_eq!(row.ularge, Some(u64::MAX), "the largest");
    assert!(row.single.is_some_and(f32::is_nan), "nan");
    assert_eq!(row.double, Some(f64::NEG_INFINITY), "-inf");
    assert_eq!(row.text, Some("say \"no\"\n\\ \u{202e}"), "with escapes");
    assert_eq!(row.raw, Some(&b"\x00\xff\x22"[..]), "bytes");
    assert_eq!(row.moment.unwrap().to_string(), "2021-11-02T22:10:25.5Z", "a time");
    assert_eq!(row.pointer, Some(types::target::Id::from_u64(5)), "a reference");
    let row = types::defaults::New::default();
    assert_eq!((row.truth, row.number, row.text), (true, 80, "hello"), "not nullable");
    let row = types::numbers::New { a: 1, ..Default::default() };
    assert_eq!((row.a, row.b, row.e), (1, None, 0), "a row that borrows nothing");
}

#[test]
fn the_macro_generates_the_same_schema() {
    let text = include_str!("../../../../examples/airports/airports.schema");
    let file = annals_schema::parse(text).unwrap();
    assert_eq!(by_macro::airports::SCHEMA, file.schema.to_text(), "in its canonical text");
}

annals::schema!(mod named = "tutorial.schema");
annals::schema!(pub(crate) mod r#type = "tutorial.schema");

#[test]
fn a_program_may_name_the_module_and_keep_it_to_itself() {
    assert_eq!(named::SCHEMA, r#type::SCHEMA);
}
