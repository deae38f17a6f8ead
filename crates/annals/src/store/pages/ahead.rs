//! Pages that are taken ahead: what follows in an array is to follow in memory.
//!
//! The columns of a table grow side by side. If each took a page when it needs one, a walk over one of them would
//! jump over the pages of the others, and the processor, which fetches ahead what follows, would fetch those:
//! summing a column took twice as long as a plain slice. So an array that is no longer small takes pages by
//! the run.

use std::cell::RefCell;
use std::fmt;

use crate::arena::{PageRef, Taken};
use crate::store::pages::paged::ArrayId;

/// Arrays with fewer pages take one at a time: a small database has none to spare.
const SMALL: usize = 16;
/// How many pages are taken at once: 256 KiB.
const RUN: usize = 16;
/// So many arrays have pages ahead, at most.
const ARRAYS: usize = 64;

/// The pages that arrays have ahead, the next one last.
#[derive(Default)]
pub(super) struct Ahead(RefCell<Vec<(ArrayId, Vec<Taken>)>>);

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// Takes the page for a place of an array, with any tag.
    pub(super) fn take(&self, array: ArrayId, index: usize, tag: u64) -> Taken {
        if index < SMALL {
            return PageRef::take(tag);
        }
        let mut all = self.0.borrow_mut();
        let place = match all.iter().position(|(id, _)| *id == array) {
            Some(place) => place,
            None => {
                if all.len() == ARRAYS {
                    all.clear();
                }
                all.push((array, Vec::with_capacity(RUN)));
                all.len() - 1
            }
        };
        let Some((_, pages)) = all.get_mut(place) else { return PageRef::take(tag) };
        if pages.is_empty() {
            pages.extend((0..RUN).map(|_| PageRef::take(tag)));
            pages.reverse();
        }
        pages.pop().unwrap_or_else(|| PageRef::take(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::pages::page::PAGE;

    #[test]
    fn each_page_is_given_out_once_and_neighbours_lie_together() {
        let ahead = Ahead::default();
        let arrays: Vec<_> = (0..ARRAYS + 3).map(|_| ArrayId::next()).collect();
        let mut pages = Vec::new();
        for index in 0..3 * RUN {
            pages.extend(arrays.iter().map(|&array| ahead.take(array, index, 7).page));
        }
        let mut places: Vec<_> = pages.iter().map(|page| page.bytes().addr().get()).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|two| two[0] + PAGE <= two[1]), "they don't overlap");

        let [first, second] = [ArrayId::next(), ArrayId::next()];
        let mut near = 0;
        let mut last = 0;
        for index in SMALL..SMALL + 4 * RUN {
            let [page, _other] = [first, second].map(|array| ahead.take(array, index, 7).page);
            let place = page.bytes().addr().get();
            near += usize::from(place.abs_diff(last) < 2 * PAGE);
            last = place;
            pages.push(page);
        }
        assert!(near > 3 * RUN, "{near} of {} follow the one before", 4 * RUN);
    }
}
