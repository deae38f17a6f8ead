//! Compares `docs/format.md` on images with the code.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use crate::image::catalog::{Array, Catalog, Kind};
use crate::image::format::{self, FANOUT, Identity, ImageHeader, Root};
use crate::image::node;
use crate::image::stored::{Packed, Stored};
use annals_schema::Txid;
use annals_simulated::document::{compare_fields, compare_layout, variants};
use annals_storage::Point;

const FULL: Stored = Stored {
    place: u64::MAX,
    sum: u64::MAX,
    txid: u64::MAX,
    len: u32::MAX >> 2,
    packed: Packed::Bits,
    backfill: u32::MAX,
};

#[test]
fn the_header_of_images_is_laid_out_as_documented() {
    let base = ImageHeader {
        version: 0,
        compatible: 0,
        read_only_compatible: 0,
        incompatible: 0,
        identity: Identity { journal_id: [0; 16], segment: 0, segment_hash: 0 },
        created: 0,
    };
    let encode = |header: &ImageHeader| header.encode().to_vec();
    let variants = variants![base, encode;
        "version": version = u32::MAX,
        "compatible": compatible = u64::MAX,
        "read_only_compatible": read_only_compatible = u64::MAX,
        "incompatible": incompatible = u64::MAX,
        "journal_id": identity.journal_id = [255; 16],
        "segment": identity.segment = u64::MAX,
        "segment_hash": identity.segment_hash = u64::MAX,
        "created": created = -1,
    ];
    compare_layout("Image header", &encode(&base), &variants);
    for (name, bytes) in variants {
        let bytes: [u8; format::IMAGE_HEADER_LEN] = bytes.try_into().unwrap();
        assert_eq!(ImageHeader::decode(&bytes).unwrap().encode(), bytes, "{name} survives reading");
    }
}

/// The contents of one copy of a root.
#[derive(Clone, Copy)]
struct RootCopy {
    root: Root,
    header: u64,
}

#[test]
fn roots_and_entries_are_laid_out_as_documented() {
    let nothing = Stored::default();
    let point = Point { position: 0, txid: Txid(0), chain: 0 };
    let root = Root {
        number: 0,
        segment: 0,
        point,
        time: 0,
        catalog: nothing,
        end: 0,
        bytes: 0,
        objects: 0,
        frames: None,
        spared: 0,
    };
    let base = RootCopy { root, header: 0 };
    let encode = |copy: &RootCopy| copy.root.encode(copy.header).to_vec();
    let variants = variants![base, encode;
        "number": root.number = u64::MAX,
        "segment": root.segment = u64::MAX,
        "position": root.point.position = u64::MAX,
        "txid": root.point.txid = Txid(u64::MAX),
        "chain": root.point.chain = u64::MAX,
        "time": root.time = -1,
        "catalog": root.catalog = FULL,
        "end": root.end = u64::MAX,
        "bytes": root.bytes = u64::MAX,
        "objects": root.objects = u64::MAX,
        "header": header = u64::MAX,
        "frames": root.frames = Some(FULL),
        "spared": root.spared = u64::MAX,
    ];
    compare_layout("Roots", &encode(&base), &variants);

    let encode = |stored: &Stored| stored.encode().to_vec();
    let mut variants = variants![nothing, encode;
        "place": place = u64::MAX,
        "sum": sum = u64::MAX,
        "txid": txid = u64::MAX,
        "backfill": backfill = u32::MAX,
    ];
    let (len, packed) = (u32::MAX >> 2, Packed::Bits);
    variants.push(("length", encode(&Stored { len, packed, ..nothing })));
    compare_fields("Entries", &encode(&nothing), &variants, Stored::LEN);
}

#[test]
fn nodes_and_catalogs_are_laid_out_as_documented() {
    let entries = |bitmap: u64| {
        std::array::from_fn::<_, FANOUT, _>(|at| (bitmap >> at & 1 == 1).then_some(FULL))
    };
    let head = |height, bitmap| node::encode(height, &entries(bitmap))[..16].to_vec();
    // A height has a separate byte, and each bit of the bitmap is its entry's.
    let at = node::encode(7, &entries(1 << 63 | 1 << 5));
    assert_eq!((at[4], &at[8..16]), (7, &(1_u64 << 63 | 1 << 5).to_le_bytes()[..]));
    assert_eq!(at.len(), format::NODE_HEAD_LEN + 2 * Stored::LEN);
    let mut base = head(1, 1);
    (base[4], base[8]) = (0, 0);
    let mut variants = vec![("height", base.clone()), ("bitmap", base.clone())];
    variants[0].1[4] = 255;
    variants[1].1[8..].fill(255);
    compare_fields("Nodes", &base, &variants, base.len());

    let array = Array { height: 9, kind: Kind::Bytes, root: Some(FULL) };
    let catalog = Catalog { arrays: vec![array; 3], metadata: b"more".to_vec() }.encode();
    let mut base = Catalog::default().encode();
    assert_eq!((catalog[4], catalog[8]), (3, 4));
    let mut variants = vec![("arrays", base.clone()), ("metadata", base.clone())];
    variants[0].1[4..8].fill(255);
    variants[1].1[8..].fill(255);
    compare_fields("Catalogs", &base, &variants, base.len());

    base = vec![0; format::ARRAY_LEN];
    let found = &catalog[format::CATALOG_HEAD_LEN..][..format::ARRAY_LEN];
    assert_eq!((found[0], found[1]), (9, format::ARRAY_BYTES));
    assert_eq!(found[8..], FULL.encode());
    let mut variants =
        vec![("height", base.clone()), ("kind", base.clone()), ("root", base.clone())];
    variants[0].1[0] = 255;
    variants[1].1[1] = 255;
    variants[2].1[8..].fill(255);
    compare_fields("Arrays", &base, &variants, base.len());
}
