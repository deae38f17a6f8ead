//! The parser of schemas.

use annals_codegen::generate;
use annals_schema::{Relation, Schema, compare, first_difference, parse, render_all};

/// Takes the bytes for a schema file.
///
/// # Panics
/// If what parses isn't the same schema when it is printed and parsed again, or differs from itself.
pub fn schema(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = match parse(text) {
        Ok(file) => file,
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused without a word");
            assert!(
                !render_all(&mistakes, "some.schema").is_empty(),
                "a mistake that says nothing"
            );
            return;
        }
    };
    let _code = generate(&file);
    let schema = file.schema;
    let printed = schema.to_text();
    match parse(&printed) {
        Ok(again) => assert_eq!(again.schema, schema, "printed as\n{printed}"),
        Err(mistakes) => panic!("{printed}\n{}", render_all(&mistakes, "printed")),
    }
    assert_eq!(compare(&schema, &schema), Relation::Same, "{printed}");
    assert_eq!(first_difference(&schema, &schema), None, "{printed}");
    upgrades(&schema);
}

/// A file that stopped at any command is upgraded, and one that continues is newer.
fn upgrades(schema: &Schema) {
    let mut older = Schema::default();
    for command in schema.commands() {
        let relation = compare(&older, schema);
        assert!(
            matches!(relation, Relation::Same | Relation::Upgrade(_)),
            "{}\nis not upgraded to\n{}\n{relation:?}",
            older.to_text(),
            schema.to_text()
        );
        assert_eq!(first_difference(&older, schema).is_none(), relation == Relation::Same);
        let back = compare(schema, &older);
        assert!(!matches!(back, Relation::Different(_)), "{back:?}");
        if let Err(error) = older.apply(command.clone()) {
            panic!("{command:?} was applied once, and not again: {error}");
        }
    }
    assert_eq!(older, *schema, "the log of a schema makes it again");
}
