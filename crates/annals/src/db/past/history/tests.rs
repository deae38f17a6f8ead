//! Compares all constants in `docs/format.md` with the code.

use std::collections::BTreeMap;

use crate::db::past::history::{about, block, cut};
use crate::journal::format;
use crate::store::history::{FIRST_TABLE, NODE};
use annals_event::opcode;
use annals_simulated::document::{constants, documented_constants};

/// Returns the constants of the history index.
fn constants_of_history() -> BTreeMap<String, Vec<u64>> {
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

/// Returns the constants of the layout of journals.
fn constants_of_journals() -> BTreeMap<String, Vec<u64>> {
    constants![
        format::VERSION,
        format::MAGIC,
        format::SLOT_MAGIC,
        format::LIVE_MAGIC,
        format::FRAME_MAGIC,
        format::HEADER_AT,
        format::HEADER_LEN,
        format::SLOT_AT,
        format::LIVE_AT,
        format::SLOT_COPY_AT,
        format::LIVE_COPY_AT,
        format::SLOT_LEN,
        format::LIVE_LEN,
        format::FRAMES_AT,
        format::FRAME_HEADER_LEN,
        format::FRAME_TRAILER_LEN,
        format::SECTOR,
        format::FRAME_ALIGN,
        format::MAX_FRAME_LEN,
        format::MAX_PAYLOAD,
        format::KIND_DATA,
        format::KIND_COMMIT,
        format::KIND_SEAL,
        format::KIND_OPENING,
        format::KIND_ERASURE,
        format::FEATURE_ERASED,
        format::FEATURE_ENCRYPTED,
        format::FEATURE_COMPRESSED,
        format::FEATURE_EVENTS,
        format::KEY_SLOTS_AT,
        format::KEY_SLOTS_LEN,
        format::SEAL_LEN,
        format::KIND_IGNORABLE,
        format::MAX_SEGMENTS,
        format::MAX_SEGMENT_LEN,
        format::LEVEL_MASK,
        format::FLAG_EXPLICIT_TIME,
        format::FLAG_COMPRESSED,
        format::FLAG_ENCRYPTED,
        format::FLAG_MORE,
        format::FLAG_FAR_TIME,
        format::FLAG_FIRST,
    ]
}

/// Returns the codes and limits of events.
fn constants_of_events() -> BTreeMap<String, Vec<u64>> {
    constants![
        opcode::CREATE_TABLE,
        opcode::ADD_FIELD,
        opcode::CREATE_INDEX,
        opcode::DROP_TABLE,
        opcode::RENAME_TABLE,
        opcode::DROP_FIELD,
        opcode::RENAME_FIELD,
        opcode::DROP_INDEX,
        opcode::SET_SINGLE_ROW,
        opcode::SET_HISTORY_INDEX,
        opcode::ADD_VARIANT,
        opcode::RENAME_VARIANT,
        opcode::DROP_VARIANT,
        opcode::TABLE,
        opcode::INSERT,
        opcode::APPEND,
        opcode::UPDATE,
        opcode::UPDATE_SAME,
        opcode::UPDATE_NULL,
        opcode::UPDATE_SAME_NULL,
        opcode::DELETE,
        opcode::INSERT_VECTOR,
        opcode::UPDATE_VECTOR,
        opcode::DELETE_VECTOR,
        opcode::COMMENT,
        opcode::TIMESTAMP,
        opcode::VALID_DATA,
        opcode::CUSTOM,
        opcode::BLOB,
        opcode::VECTOR_CELLS,
        opcode::VECTOR_VALUES,
        opcode::FIRST_IGNORABLE,
        opcode::PAD,
        opcode::FIRST_ESSENTIAL,
        opcode::ERASED_INSERT,
        opcode::ERASED_UPDATE,
        opcode::ERASED_VECTOR,
        opcode::FIELD_NULLABLE,
        opcode::FIELD_DEFAULT,
        opcode::FIELD_DEFAULT_NULL,
        opcode::FIELD_ON_DELETE,
        opcode::COLUMN_DESCENDING,
        opcode::COLUMN_COLLATED,
        annals_event::MAX_VECTOR,
        annals_event::BARE_ROWS,
        annals_event::ROWS_PER_BYTE,
        annals_event::MAX_PIECE,
    ]
}

#[test]
fn the_constants_are_those_of_the_document() {
    let mut code = constants_of_journals();
    code.extend(constants_of_events());
    code.extend(crate::image::testing::constants());
    code.extend(constants_of_history());
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
