//! Compares `docs/format.md` on journals with the code.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use annals_schema::Txid;
use std::collections::BTreeMap;

use annals_simulated::document::{codes, compare_fields, compare_layout, number, rows, variants};

use crate::format::{self, Header, Live, Point, Slot};
use crate::frame::FrameHeader;
use crate::level::Level;

#[test]
fn the_codes_of_levels_are_those_of_the_document() {
    let code: BTreeMap<_, _> =
        Level::ALL.map(|level| (u64::from(level.code()), level.name().to_owned())).into();
    assert_eq!(Level::of_code(4), None);
    assert_eq!(codes("Levels"), code);
}

#[test]
fn the_header_is_laid_out_as_documented() {
    let base = Header {
        version: 0,
        compatible: 0,
        read_only_compatible: 0,
        incompatible: 0,
        journal_id: [0; 16],
        segment: 0,
        first_txid: 0,
        previous_chain: 0,
        created: 0,
        cipher: 0,
        key_id: [0; 16],
        salt: [0; 32],
        state: 0,
        erasure: 0,
        reserved: [0; 88],
    };
    let encode = |header: &Header| header.encode().to_vec();
    let variants = variants![base, encode;
        "version": version = u32::MAX,
        "compatible": compatible = u64::MAX,
        "read_only_compatible": read_only_compatible = u64::MAX,
        "incompatible": incompatible = u64::MAX,
        "journal_id": journal_id = [255; 16],
        "segment": segment = u64::MAX,
        "first_txid": first_txid = u64::MAX,
        "previous_chain": previous_chain = u64::MAX,
        "created": created = -1,
        "cipher": cipher = u64::MAX,
        "key_id": key_id = [255; 16],
        "salt": salt = [255; 32],
        "state": state = u64::MAX,
        "erasure": erasure = u64::MAX,
        "reserved": reserved = [255; 88],
    ];
    compare_layout("Header", &encode(&base), &variants);
    for (name, bytes) in variants {
        let bytes: [u8; format::HEADER_LEN] = bytes.try_into().unwrap();
        assert_eq!(Header::decode(&bytes).unwrap().encode(), bytes, "{name} survives reading");
    }
}

/// The contents of one copy of a slot.
#[derive(Clone, Copy)]
struct SlotCopy {
    slot: Slot,
    header: u64,
}

#[test]
fn slots_and_live_block_are_laid_out_as_documented() {
    let point = Point { position: 0, txid: Txid(0), chain: 0 };
    let slot = Slot { point, zeroed_to: 0, sequence: 0, secret: [0; 16] };
    let base = SlotCopy { slot, header: 0 };
    let encode = |copy: &SlotCopy| copy.slot.encode(copy.header).to_vec();
    let variants = variants![base, encode;
        "position": slot.point.position = u64::MAX,
        "txid": slot.point.txid = Txid(u64::MAX),
        "chain": slot.point.chain = u64::MAX,
        "zeroed_to": slot.zeroed_to = u64::MAX,
        "header": header = u64::MAX,
        "sequence": slot.sequence = u64::MAX,
        "secret": slot.secret = [255; 16],
    ];
    compare_layout("Slots", &encode(&base), &variants);

    let base = Live { pid: 0, soft: point, hard: 0, suspect: false };
    let encode = |live: &Live| live.encode().to_vec();
    let variants = variants![base, encode;
        "pid": pid = u32::MAX,
        "soft": soft.position = u64::MAX,
        "hard": hard = u64::MAX,
        "txid": soft.txid = Txid(u64::MAX),
        "chain": soft.chain = u64::MAX,
    ];
    // `suspect` is one bit of its field; its place is compared here.
    let suspect = Live { suspect: true, ..base }.encode();
    assert_eq!((suspect[40], base.encode()[40]), (1, 0));
    let mut variants = variants;
    let mut whole_field = encode(&base);
    whole_field[40..44].fill(255);
    variants.push(("suspect", whole_field));
    compare_layout("Live block", &encode(&base), &variants);
}

#[test]
fn frames_are_laid_out_as_documented() {
    let base = FrameHeader {
        kind: 0,
        level: 0,
        flags: 0,
        length: 0,
        txid: 0,
        position: 0,
        durable: Some(0),
        nonce: 0,
        time: 0,
    };
    let encode = |header: &FrameHeader| header.encode(0).to_vec();
    let mut variants = variants![base, encode;
        "kind": kind = u8::MAX,
        "length": length = (1 << 24) - 1,
        "txid": txid = u64::from(u32::MAX),
        "durable": durable = None,
        "nonce": nonce = u64::MAX,
        "time": time = -1,
    ];
    // The level and the flags share a byte.
    variants.push(("flags", encode(&FrameHeader { level: 3, flags: 0xFC, ..base })));
    compare_fields("Frames", &encode(&base), &variants, format::FRAME_HEADER_LEN - 4);
    let trailer = rows().into_iter().filter(|row| row.section == "The end of a frame");
    let fields: Vec<_> = trailer
        .filter_map(|row| {
            Some((number(&row.cells[0])?, number(&row.cells[1])?, row.cells[2].clone()))
        })
        .collect();
    let expected = [(0, 4, "check"), (4, 4, "tag"), (8, 8, "chain")];
    assert_eq!(fields, expected.map(|(at, len, name)| (at, len, name.to_owned())));
}
