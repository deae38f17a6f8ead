//! Compares all constants in `docs/format.md` with the code.

use std::collections::BTreeMap;

use crate::db::past::history::{about, block, cut};
use crate::store::history::{FIRST_TABLE, NODE};
use annals_storage::document::documented_constants;

/// Returns the constants of the history index.
fn constants() -> BTreeMap<String, Vec<u64>> {
    let constants = [
        ("NODE", NODE as u64),
        ("SMALL", about::SMALL as u64),
        ("COMMENT_BITS", u64::from(cut::COMMENT_BITS)),
        ("FIRST_TABLE", FIRST_TABLE),
        ("COMMENTS", about::COMMENTS),
        ("MARKS", about::MARKS),
        ("TRANSACTIONS", about::TRANSACTIONS),
        ("BLOCKS", about::BLOCKS),
        ("COMMENTED", about::COMMENTED),
        ("COMMANDS", about::COMMANDS),
        ("EVENTS", block::EVENTS),
        ("ZEROS", block::ZEROS),
        ("VALUES", block::VALUES),
        ("FRAMES", block::FRAMES),
    ];
    constants.map(|(name, value)| (name.to_owned(), vec![value])).into()
}

#[test]
fn the_constants_are_those_of_the_document() {
    let mut code = crate::journal::testing::constants();
    code.extend(annals_event::testing::constants());
    code.extend(crate::image::testing::constants());
    code.extend(constants());
    let document = documented_constants();
    for (name, value) in &code {
        assert_eq!(document.get(name), Some(value), "docs/format.md on {name}");
    }
    for name in document.keys() {
        assert!(code.contains_key(name), "docs/format.md has {name}, the code hasn't");
    }
    // The list above is complete: every constant that the code shows is in it.
    // A type's code is compared with the other types, the place of the checksum with the header.
    let exempt = ["REFERENCE", "DECIMAL", "ENUM", "JSON", "FIXED_BYTES", "STATED_LEN", "SUM_AT"];
    let sources = [
        include_str!("../../../../../annals-journal/src/format.rs"),
        include_str!("../../../../../annals-storage/src/header.rs"),
        include_str!("../../../../../annals-event/src/opcode.rs"),
        include_str!("../../../../../annals-event/src/lib.rs"),
        include_str!("../../../../../annals-store/src/image/format.rs"),
        include_str!("../../../../../annals-store/src/history/mod.rs"),
        include_str!("about.rs"),
        include_str!("block.rs"),
    ];
    for source in sources {
        for line in source.lines() {
            let visible = ["pub const ", "pub(crate) const ", "pub(super) const "];
            let shown = visible.iter().find_map(|prefix| line.strip_prefix(prefix));
            let shown = shown.filter(|rest| !rest.starts_with("fn "));
            let Some((name, _)) = shown.and_then(|rest| rest.split_once(':')) else { continue };
            assert!(
                code.contains_key(name) || exempt.contains(&name),
                "{name} isn't compared with docs/format.md"
            );
        }
    }
}
