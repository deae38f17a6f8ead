//! Images whose checksums are right and that say what can't be.

use std::sync::Arc;

use super::world::{IDENTITY, NAME, open, point};
use crate::image::catalog::{Array, Catalog, Kind};
use crate::image::check::check;
use crate::image::file::Image;
use crate::image::format::{FANOUT, MAX_HEIGHT, NODE_HEAD_LEN, Root};
use crate::image::node;
use crate::image::publish::{Draft, NewRoot};
use crate::image::roots::ROOTS;
use crate::image::stored::Stored;
use annals_simulated::SimulatedClock;
use annals_storage::{Directory, MemoryDirectory, SystemClock};

/// Publishes the objects and the catalog that `make` writes; returns the result of a check.
fn problem(make: impl FnOnce(&Image, &mut Draft<'_>) -> Vec<u8>) -> String {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let image = Image::create(&directory, NAME, &IDENTITY, &SimulatedClock::new(1)).unwrap();
    let mut draft = image.space(None).unwrap();
    let catalog = make(&image, &mut draft);
    let catalog = put(&image, &mut draft, &catalog);
    draft
        .publish(&NewRoot { segment: 0, point: point(1), time: 0, catalog, frames: None })
        .unwrap();
    let report = check(&directory, NAME, &SystemClock).unwrap();
    report.problem.unwrap_or_default()
}

fn put(image: &Image, draft: &mut Draft<'_>, bytes: &[u8]) -> Stored {
    let stored = draft.place(bytes, 1).unwrap();
    image.write(&[(stored.place, &[bytes])]).unwrap();
    stored
}

fn of(height: u8, kind: Kind, root: Stored) -> Vec<u8> {
    let arrays = vec![Array { height, kind, root: Some(root) }];
    Catalog { arrays, metadata: Vec::new() }.encode()
}

fn full_of(entry: Stored) -> node::Entries {
    [Some(entry); FANOUT]
}

#[test]
fn a_directory_that_leads_to_itself_ends() {
    // Each of 11 nodes leads 64 times to the next one: 64^11 ways.
    let found = problem(|image, draft| {
        let mut below = put(image, draft, b"page");
        for height in 1..=MAX_HEIGHT {
            below = put(image, draft, &node::encode(height, &full_of(below)));
        }
        of(MAX_HEIGHT, Kind::Pages, below)
    });
    assert!(found.contains("shares a unit"), "{found}");
}

#[test]
fn objects_that_overlap_are_found() {
    let found = problem(|image, draft| {
        let long = put(image, draft, &[7; 9000]);
        let within = Stored { place: long.place + 4096, len: 5, ..long };
        let sum = Stored::sum_of(within.place, &[7; 5]);
        let mut entries = [None; FANOUT];
        (entries[0], entries[5]) = (Some(long), Some(Stored { sum, ..within }));
        let node = put(image, draft, &node::encode(1, &entries));
        of(1, Kind::Bytes, node)
    });
    assert!(found.contains("shares a unit"), "{found}");
}

#[test]
fn entries_that_lead_astray_are_found() {
    type Wrong = fn(Stored) -> Stored;
    let wrong: [(&str, Wrong); 5] = [
        ("multiple of the unit", |page| Stored { place: page.place + 8, ..page }),
        ("in the head", |page| Stored { place: 8192, ..page }),
        ("beyond the used space", |page| Stored { place: 1 << 40, ..page }),
        ("beyond the used space", |page| Stored { place: u64::MAX - 4095, ..page }),
        ("beyond the used space", |page| Stored { len: u32::MAX, ..page }),
    ];
    for (reason, wrong) in wrong {
        for height in 0..3 {
            let found = problem(|image, draft| {
                let mut entry = wrong(put(image, draft, b"page"));
                for height in 1..=height {
                    let mut entries = [None; FANOUT];
                    entries[63] = Some(entry);
                    entry = put(image, draft, &node::encode(height, &entries));
                }
                of(height, Kind::Bytes, entry)
            });
            assert!(found.contains(reason), "{reason}: {found}");
        }
    }
}

#[test]
fn what_is_no_node_and_no_catalog_is_found() {
    let page = |image: &Image, draft: &mut Draft<'_>| put(image, draft, b"page");
    let good = |page: Stored| node::encode(2, &full_of(page));
    type Spoil = fn(&mut Vec<u8>);
    let wrong: [(&str, Spoil); 6] = [
        ("too short for a node", |node| node.truncate(NODE_HEAD_LEN - 1)),
        ("it is no node", |node| node[0] = b'M'),
        ("another height", |node| node[4] = 3),
        ("lacks entries", |node| node.truncate(100)),
        ("entry of nothing", |node| node[NODE_HEAD_LEN..][..32].fill(0)),
        ("the node is empty", |node| {
            node[8..16].fill(0);
            node.truncate(NODE_HEAD_LEN);
        }),
    ];
    for (reason, spoil) in wrong {
        let found = problem(|image, draft| {
            let mut node = good(page(image, draft));
            spoil(&mut node);
            of(2, Kind::Pages, put(image, draft, &node))
        });
        assert!(found.contains(reason) && found.contains("height 2"), "{reason}: {found}");
    }
    let wrong: [(&str, Spoil); 6] = [
        ("too short for a catalog", |catalog| catalog.truncate(15)),
        ("it is no catalog", |catalog| catalog[3] = 0),
        ("lacks arrays", |catalog| catalog[4] = 2),
        ("too high", |catalog| catalog[16] = MAX_HEIGHT + 1),
        ("unknown kind", |catalog| catalog[17] = 9),
        ("another length", |catalog| catalog.push(0)),
    ];
    for (reason, spoil) in wrong {
        let found = problem(|image, draft| {
            let mut catalog = of(0, Kind::Pages, page(image, draft));
            spoil(&mut catalog);
            catalog
        });
        assert!(found.contains(reason) && found.contains("the catalog"), "{reason}: {found}");
    }
    let long = problem(|image, draft| of(0, Kind::Pages, put(image, draft, &[1; 16385])));
    assert!(long.contains("longer than any page"), "{long}");
    let long = problem(|image, draft| of(2, Kind::Pages, put(image, draft, &[1; 2065])));
    assert!(long.contains("longer than any node"), "{long}");
}

#[test]
fn a_root_that_says_more_or_less_than_there_is_is_found() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let image = Image::create(&directory, NAME, &IDENTITY, &SimulatedClock::new(1)).unwrap();
    let mut draft = image.space(None).unwrap();
    let catalog = put(&image, &mut draft, &Catalog::default().encode());
    // Nothing refers to this.
    put(&image, &mut draft, b"lost");
    let new = NewRoot { segment: 0, point: point(1), time: 0, catalog, frames: None };
    let root = draft.publish(&new).unwrap();
    let problem = || check(&directory, NAME, &SystemClock).unwrap().problem.unwrap_or_default();
    assert!(problem().contains("its objects end at 16384, and it says 20480"), "{}", problem());
    let rewrite = |root: Root| {
        for copy in [0, 1] {
            ROOTS.write_copy(&*image.storage, 0, copy, &root.encode(image.header)).unwrap();
        }
    };
    rewrite(Root { end: 16384, ..root });
    assert_eq!(problem(), "");
    rewrite(Root { end: 16384, bytes: 15, ..root });
    assert!(problem().contains("wrote 16 bytes, and it says 15"), "{}", problem());
}

#[test]
fn a_good_image_is_good() {
    let found = problem(|image, draft| of(0, Kind::Pages, put(image, draft, b"page")));
    assert_eq!(found, "");
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let image = Image::create(&directory, NAME, &IDENTITY, &SimulatedClock::new(1)).unwrap();
    let mut draft = image.space(None).unwrap();
    let catalog = put(&image, &mut draft, &Catalog::default().encode());
    draft
        .publish(&NewRoot { segment: 4, point: point(1), time: -5, catalog, frames: None })
        .unwrap();
    let root = open(&directory).root;
    assert_eq!((root.segment, root.time, root.objects), (4, -5, 1));
}
