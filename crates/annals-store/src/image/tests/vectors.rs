//! Tests that the library writes the example image of `docs/format.md` byte for byte, and can read it.

use annals_schema::Txid;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::image::catalog::Kind;
use crate::image::miniature::{Changes, Next, advance, arrays, content};
use crate::image::roots::Slot;
use crate::image::walk::{WalkStep, walk};
use crate::image::{Identity, Image, Opened, check};
use annals_simulated::SimulatedClock;
use annals_simulated::document::{block, dump, parse_dump};
use annals_storage::Point;
use annals_storage::{Access, Directory, MemoryDirectory};

const NAME: &str = "vector-image";
const IDENTITY: Identity =
    Identity { journal_id: [0x1D; 16], segment: 0, segment_hash: 0x5E60_0000_0000_04A5 };

/// Writes the image of the document: two roots, arrays of each sort, and one that is empty.
fn write_image() -> Vec<u8> {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let image = Image::create(&directory, NAME, &IDENTITY, &SimulatedClock::new(1)).unwrap();
    let kinds = [(1, Kind::Pages), (2, Kind::Pages), (0, Kind::Bytes), (1, Kind::Bytes)];
    let put = |number: u64, text: &str| Changes::from([(number, Some(text.as_bytes().to_vec()))]);
    let first = [(0, put(2, "a page")), (1, put(64, "far away")), (2, put(0, "a long value"))];
    let second = [(0, put(3, "another page"))];
    let mut catalog = arrays(&kinds);
    let mut old = None;
    for (txid, changes) in [(7, first.to_vec()), (9, second.to_vec())] {
        let point =
            Point { position: 16384 + 100 * txid, txid: Txid(txid), chain: 0xC4A1 << 40 | txid };
        let changes = changes.into_iter().collect();
        let new = Next { point, metadata: b"metadata", pinned: &[], keeps_frames: false };
        let (root, next) = advance(&image, &catalog, old.as_ref(), &changes, &new).unwrap();
        (old, catalog) = (Some(root.catalog), next);
    }
    let mut bytes = vec![0; usize::try_from(image.len().unwrap()).unwrap()];
    directory.open(NAME, Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
    bytes
}

/// Reads an image and prints its contents.
fn transcript(bytes: &[u8]) -> String {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    directory.create(NAME).unwrap().write_at(0, bytes).unwrap();
    let report = check::check(&directory, NAME, &annals_storage::SystemClock).unwrap();
    assert_eq!(report.problem, None);
    let Opened::Usable(usable) = Image::open(&directory, NAME, &IDENTITY, Access::Read).unwrap()
    else {
        panic!("it can't be used")
    };
    let mut text = String::new();
    for slot in report.slots.unwrap() {
        let Slot::Whole(root) = slot else { panic!("{slot:?}") };
        let (number, point) = (root.number, root.point);
        writeln!(text, "root {number}: transaction {}, position {}", point.txid, point.position)
            .unwrap();
        walk(&usable.image, &root, |object, stored| {
            let (place, len) = (stored.place, stored.len);
            writeln!(text, "  {place}: {object}, {len} bytes, of backfill {}", stored.backfill)
                .unwrap();
            Ok(WalkStep::Enter)
        })
        .unwrap();
    }
    for (number, array) in content(&usable.image, &usable.catalog).unwrap().iter().enumerate() {
        writeln!(text, "array {number}").unwrap();
        for (number, bytes) in array {
            writeln!(text, "  {number}: {:?}", String::from_utf8_lossy(bytes)).unwrap();
        }
    }
    writeln!(text, "{:?}", String::from_utf8_lossy(&usable.catalog.metadata)).unwrap();
    text
}

#[test]
fn the_documented_image_is_what_is_written() {
    let (written, documented) = (dump(&write_image()), block("hex image"));
    assert!(written == documented, "the library writes:\n{written}");
}

#[test]
fn the_documented_image_can_be_read() {
    let bytes = parse_dump(block("hex image"));
    let (read, documented) = (transcript(&bytes), block("text image"));
    assert!(read == documented, "the library reads:\n{read}");
}
