//! Compares `docs/format.md` on history indexes, and all constants in it, with the code.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use std::collections::BTreeMap;

use crate::history::extent::Extent;
use crate::history::format::{self, Bound, Head};
use crate::history::node::{Child, Key};
use crate::history::zone::Zone;
use annals_storage::Point;
use annals_storage::document::{compare_fields, documented_constants, variants};

/// Returns the constants of the layout of history indexes.
pub(crate) fn constants() -> BTreeMap<String, Vec<u64>> {
    let magic = format::HISTORY_MAGIC.iter().map(|&byte| u64::from(byte)).collect();
    let constants = [
        ("HISTORY_VERSION", vec![u64::from(format::HISTORY_VERSION)]),
        ("HISTORY_MAGIC", magic),
        ("PAGE", vec![format::PAGE as u64]),
        ("HISTORY_AT", format::HISTORY_AT.to_vec()),
        ("RUNS_AT", vec![format::RUNS_AT]),
        ("HISTORY_HEAD_LEN", vec![format::HISTORY_HEAD_LEN as u64]),
        ("HISTORY_RUN_LEN", vec![format::HISTORY_RUN_LEN as u64]),
        ("MOST_RUNS", vec![format::MOST_RUNS as u64]),
        ("ZONE_LEN", vec![format::ZONE_LEN as u64]),
        ("CHILD_LEN", vec![format::CHILD_LEN as u64]),
        ("CHILDREN", vec![format::CHILDREN]),
        ("ZONES", vec![format::ZONES]),
    ];
    constants.map(|(name, value)| (name.to_owned(), value)).into()
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
    let exempt = ["REFERENCE", "STATED_LEN", "SUM_AT"];
    let sources = [
        include_str!("../../../../annals-journal/src/format.rs"),
        include_str!("../../../../annals-storage/src/header.rs"),
        include_str!("../../../../annals-event/src/opcode.rs"),
        include_str!("../../../../annals-event/src/lib.rs"),
        include_str!("../../../../annals-store/src/image/format.rs"),
        include_str!("../format.rs"),
    ];
    for source in sources {
        for line in source.lines() {
            let shown = line.strip_prefix("pub const ");
            let shown = shown.or_else(|| line.strip_prefix("pub(crate) const "));
            let shown = shown.filter(|rest| !rest.starts_with("fn "));
            let Some((name, _)) = shown.and_then(|rest| rest.split_once(':')) else { continue };
            assert!(
                code.contains_key(name) || exempt.contains(&name),
                "{name} isn't compared with docs/format.md"
            );
        }
    }
}

const NOWHERE: Point = Point { position: 0, txid: 0, chain: 0 };

#[test]
fn the_parts_of_history_indexes_are_laid_out_as_documented() {
    let zone =
        Zone { segment: 0, start: NOWHERE, end: NOWHERE, least_time: 0, commands: 0, flags: 0 };
    let encode = |zone: &Zone| zone.encode().to_vec();
    let told = variants![zone, encode;
        "segment": segment = u64::MAX,
        "start_position": start.position = u64::MAX,
        "start_txid": start.txid = u64::MAX,
        "start_chain": start.chain = u64::MAX,
        "end_position": end.position = u64::MAX,
        "end_txid": end.txid = u64::MAX,
        "end_chain": end.chain = u64::MAX,
        "least_time": least_time = -1,
        "commands": commands = u32::MAX,
        "flags": flags = u32::MAX,
    ];
    compare_fields("Zones", &encode(&zone), &told, format::ZONE_LEN);
    for (_, bytes) in told {
        let bytes: [u8; format::ZONE_LEN] = bytes.try_into().unwrap();
        assert_eq!(Zone::decode(&bytes).encode(), bytes);
    }

    let key = Key { table: 0, row: 0 };
    let child = Child { first: key, end: key, sum: 0 };
    let encode = |child: &Child| child.encode().to_vec();
    let told = variants![child, encode;
        "first_table": first.table = u64::from(u32::MAX),
        "end_table": end.table = u64::from(u32::MAX),
        "first_row": first.row = u64::MAX,
        "end_row": end.row = u64::MAX,
        "sum": sum = u64::MAX,
    ];
    compare_fields("Pages above others", &encode(&child), &told, format::CHILD_LEN);

    let run = Extent {
        place: 0,
        zone: 0,
        zones: 0,
        leaves: 0,
        entries: 0,
        segments: (0, 0),
        end_txid: 0,
        least_time: 0,
        rows_sum: 0,
        zones_sum: 0,
    };
    let encode = |run: &Extent| run.encode().to_vec();
    let mut told = variants![run, encode;
        "place": place = u64::MAX,
        "zone": zone = u64::MAX,
        "zones": zones = u64::MAX,
        "leaves": leaves = u64::MAX,
        "entries": entries = u64::MAX,
        "end_txid": end_txid = u64::MAX,
        "least_time": least_time = -1,
        "rows_sum": rows_sum = u64::MAX,
        "zones_sum": zones_sum = u64::MAX,
    ];
    let of = |segments| encode(&Extent { segments, ..run });
    told.push(("first_segment", of((u64::MAX, 0))));
    told.push(("last_segment", of((0, u64::MAX))));
    compare_fields("Runs", &encode(&run), &told, format::HISTORY_RUN_LEN);
}

#[test]
fn a_head_with_any_byte_changed_is_none() {
    let run = Extent {
        place: format::RUNS_AT,
        zone: 3,
        zones: 4,
        leaves: 1,
        entries: 9,
        segments: (0, 1),
        end_txid: 8,
        least_time: -5,
        rows_sum: 1,
        zones_sum: 2,
    };
    let point = Point { position: 20_000, txid: 8, chain: 77 };
    let bound = Bound { segment: 1, point, commands: 4 };
    let head = Head { number: 5, journal_id: [9; 16], bound, next_zone: 7, runs: vec![run] };
    let bytes = head.encode();
    assert_eq!(Head::decode(&bytes), Some(head));
    for at in 0..bytes.len() {
        let mut wrong = bytes;
        wrong[at] ^= 1;
        assert_eq!(Head::decode(&wrong), None, "byte {at}");
    }
}
