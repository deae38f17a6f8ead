//! Packed nodes against the nodes themselves.

use crate::arena::PAGE;
use crate::btree::node::{self, Entry, Node};
use crate::btree::packing::FORM;
use crate::image::{Packed, Stored};
use crate::pages::cells::Longs;
use crate::pages::packing::Packing;
use crate::pages::page::{Epoch, PageRef};
use annals_simulated::Rng;

use super::{Model, sized};

const PACKING: Packing = FORM.packing;

fn restored(packed: &[u8], form: Packed) -> crate::Result<Box<[u8; PAGE]>> {
    let mut page = Box::new([0; PAGE]);
    let stored = Stored { packed: form, ..Stored::default() };
    PACKING.unpack(&stored, packed, &mut page).map(|()| page)
}

fn is_node(page: &[u8; PAGE]) -> bool {
    Node::new(page).check(0, &Longs::default()).is_ok_and(|is_right| is_right)
}

/// How the keys of a node look.
#[derive(Clone, Copy)]
struct Shape {
    key_len: usize,
    size: usize,
    /// Bits in which the bytes of keys and values differ.
    masks: [u8; 64],
}

impl Shape {
    fn draw(rng: &mut Rng) -> Self {
        let mut masks = [0; 64];
        rng.fill(&mut masks);
        for mask in &mut masks {
            *mask = if rng.percent(60) { 0 } else { *mask };
        }
        masks[4] |= 15; // so that there are some keys
        Self { key_len: 5 + rng.index(40), size: [0, 0, 2, 4, 16][rng.index(5)], masks }
    }

    fn bytes(&self, rng: &mut Rng, from: usize, len: usize) -> Vec<u8> {
        (from..from + len)
            .map(|at| 0x35 ^ (self.masks[at] & rng.number().to_le_bytes()[0]))
            .collect()
    }
}

/// Fills a node with entries, of which some are removed; returns them in order too.
fn filled(rng: &mut Rng, shape: &Shape) -> (Box<[u8; PAGE]>, Model) {
    let (mut page, mut model) = (Box::new([0; PAGE]), Model::new());
    node::clear(&mut page, shape.size);
    for _ in 0..1 + rng.index(900) {
        let key = shape.bytes(rng, 0, shape.key_len);
        let value = shape.bytes(rng, shape.key_len, shape.size);
        let at = model.range(..key.clone()).count();
        let is_there = model.contains_key(&key);
        if is_there && model.len() > 1 && rng.percent(60) {
            node::remove(&mut page, at);
            model.remove(&key);
        }
        if !is_there && node::insert(&mut page, at, Entry { part: &key, long: None, value: &value })
        {
            model.insert(key, value);
        }
    }
    (page, model)
}

#[test]
fn nodes_come_back() {
    let (mut rng, mut packed_nodes) = (Rng::new(21), 0);
    for _ in 0..sized(300, 3) {
        let shape = Shape::draw(&mut rng);
        let (page, model) = filled(&mut rng, &shape);
        assert!(is_node(&page));
        let Some((packed, form)) = PACKING.pack(&page[..]) else { continue };
        packed_nodes += usize::from(form == Packed::Bits);
        assert!(packed.len() <= PAGE - 4096);
        let found = restored(&packed, form).unwrap();
        assert!(is_node(&found));
        let found = Node::new(&found);
        let entries: Vec<_> =
            (0..found.count()).map(|i| (found.part(i).to_vec(), found.value(i).to_vec())).collect();
        assert!(entries == model.into_iter().collect::<Vec<_>>());
        // There is room for as many entries more, at least.
        assert!(found.used() <= Node::new(&page).used());
    }
    assert!(packed_nodes > sized(100, 0), "{packed_nodes}");
}

#[test]
fn keys_of_different_lengths_are_no_rows() {
    let mut page = [0; PAGE];
    node::clear(&mut page, 0);
    for i in 0..400_u32 {
        let part = format!("{i:06}");
        let part = if i == 399 { "9" } else { &part };
        assert!(node::insert(
            &mut page,
            i as usize,
            Entry { part: part.as_bytes(), long: None, value: &[] }
        ));
    }
    let (packed, form) = PACKING.pack(&page).unwrap();
    assert_eq!(form, Packed::Lz4);
    let found = restored(&packed, form).unwrap();
    assert!(is_node(&found) && *found == page);
}

#[test]
fn bytes_that_are_no_node_are_refused_and_never_a_panic() {
    let (mut rng, mut refused, mut taken) = (Rng::new(22), 0, 0);
    for _ in 0..sized(100, 2) {
        let shape = Shape::draw(&mut rng);
        let (page, _) = filled(&mut rng, &shape);
        let Some((packed, Packed::Bits)) = PACKING.pack(&page[..]) else { continue };
        for _ in 0..50 {
            let mut bytes = packed.clone();
            for _ in 0..1 + rng.index(3) {
                let at = if rng.percent(70) { rng.index(80) } else { rng.index(bytes.len()) };
                let at = at.min(bytes.len() - 1);
                bytes[at] = rng.number().to_le_bytes()[0];
            }
            if rng.percent(20) {
                bytes.truncate(rng.index(bytes.len()));
            }
            match restored(&bytes, Packed::Bits) {
                Err(_) => refused += 1,
                Ok(found) => {
                    // What no check of a loaded page refuses must not lead anywhere else.
                    let mut own = PageRef::zeroed(&Epoch::first());
                    own.new_bytes().copy_from_slice(&found[..]);
                    assert!((FORM.check)(&own));
                    taken += 1;
                }
            }
        }
    }
    assert!(refused > sized(500, 0) && taken > sized(500, 0), "{refused}, {taken}");
}
