//! Tests of loading arrays from an image.

use std::sync::Arc;

use crate::ErrorKind;
use crate::image::Stored;
use crate::pages::base::{Base, BaseRoot, Form};
use crate::pages::cells::Cells;
use crate::pages::packing::{NodePacking, Packing};
use crate::pages::page::{Epoch, PageRef};
use crate::pages::paged::Paged;
use crate::pages::pager::Wanted;
use crate::pages::refresh::Refresh;
use crate::pages::save::Blanks;
use crate::pages::testing::TestImage;

#[test]
fn a_node_that_claims_to_be_huge_takes_no_memory() {
    let (_image, pager) = TestImage::new(u64::MAX, true);
    let stored = Some(Stored { place: 12288, len: u32::MAX, ..Stored::default() });
    let base: Base<PageRef> = Base::new(BaseRoot { height: 0, stored }, pager, Form::BYTES);
    let error = base.get(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("are no node"), "{error}");
}

#[test]
fn a_value_that_claims_to_be_huge_takes_no_memory() {
    let (_image, pager) = TestImage::new(u64::MAX, true);
    let stored = &Stored { place: 12288, len: u32::MAX, ..Stored::default() };
    let wanted = Wanted { stored, packing: Packing::Bytes, is_spare: false };
    let error = pager.load::<Arc<[u8]>>(&wanted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("shorter"), "{error}");
}

#[test]
fn an_array_that_is_brought_up_to_date_is_what_a_clone_is() {
    type Change<'c> = &'c dyn Fn(&mut Paged<Arc<[u8]>>);
    let (image, pager) = TestImage::new(u64::MAX, true);
    let rebase: Change<'_> = &|array| {
        let array_then = array.clone();
        image.save(&pager, |out| out.longs(&array_then)).rebase_longs(array);
    };
    let put = |place: usize, byte: u8| {
        move |array: &mut Paged<Arc<[u8]>>| array.put(place, Arc::from([byte]))
    };
    let remove = |place: usize| move |array: &mut Paged<Arc<[u8]>>| array.remove(place);
    let changes: [Change<'_>; 9] = [
        &put(3, 1),
        &put(700, 2),
        &put(3, 3),
        &remove(700),
        rebase,
        &put(1, 4),
        &remove(3),
        rebase,
        &|array| *array = Paged::default(),
    ];
    let mut array = Paged::default();
    let all = |array: &Paged<Arc<[u8]>>| {
        let at = |place| array.get(place).unwrap().map(|item| item.to_vec());
        let base = array.base().map(Arc::as_ptr);
        ([1, 3, 700].map(at), array.here(3).is_some(), base)
    };
    for (number, change) in changes.into_iter().enumerate() {
        let mut old = array.clone();
        change(&mut array);
        old.refresh(&array);
        assert_eq!((all(&old), old.id()), (all(&array), array.id()), "change {number}");
    }
}

/// A crafted image may have two arrays of different forms refer to the same bytes.
#[test]
fn a_cached_page_is_only_for_arrays_of_its_form() {
    let (image, pager) = TestImage::new(1 << 20, false);
    image.set_packing(true);
    let mut cells = Cells::<8>::default();
    let epoch = Epoch::first();
    for slot in 0..3000 {
        cells.set(slot, [9; 8], epoch.seen()).unwrap();
    }
    let saved = image.save(&pager, |out| cells.save(out, &Blanks::NONE));
    let root = saved.roots[0];
    let all: Base<PageRef> = Base::new(root, Arc::clone(&pager), Form::cells(8));
    assert!(all.get(0).unwrap().is_some());
    static NODES: NodePacking = NodePacking { pack: |_| None, unpack: |_, _| None };
    let form = Form { check: |_: &PageRef| false, packing: Packing::Nodes(&NODES) };
    let nodes = Base::new(root, Arc::clone(&pager), form);
    assert_eq!(nodes.get(0).unwrap_err().kind(), ErrorKind::Corrupt);
    let loads = pager.usage().loads;
    assert!(all.get(0).unwrap().is_some() && pager.usage().loads == loads, "it is still cached");
    // Nor are its bytes numbers of another size.
    let others: Base<PageRef> = Base::new(root, Arc::clone(&pager), Form::cells(4));
    assert_eq!(others.get(0).unwrap_err().kind(), ErrorKind::Corrupt);
}
