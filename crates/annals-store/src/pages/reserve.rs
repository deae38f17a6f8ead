//! Pages that are allocated ahead: neighbours in an array should be neighbours in memory.
//!
//! The columns of a table grow side by side. If each allocated a page when it needs one, the pages of arrays would
//! alternate. The processor prefetches what follows in memory, and would fetch pages of other arrays: summing a
//! column took twice as long as a plain slice. So an array that is no longer small takes pages by the run.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arena::{PageRef, Taken};

/// Arrays with fewer pages take one at a time: a small database has none to spare.
const SMALL: usize = 16;
/// How many pages are taken at once: 256 KiB.
const RUN: usize = 16;
/// The most arrays that have pages in reserve.
const ARRAYS: usize = 64;

/// Identifies an array within this process, whichever view has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArrayId(u64);

impl ArrayId {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The pages in reserve for arrays, the next one last.
#[derive(Default)]
pub(super) struct Reserve(RefCell<Vec<(ArrayId, Vec<Taken>)>>);

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").finish_non_exhaustive()
    }
}

impl Reserve {
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
    use crate::pages::page::PAGE;

    #[test]
    fn each_page_is_given_out_once() {
        let reserve = Reserve::default();
        let arrays: Vec<_> = (0..ARRAYS + 3).map(|_| ArrayId::next()).collect();
        let mut pages = Vec::new();
        for index in 0..3 * RUN {
            pages.extend(arrays.iter().map(|&array| reserve.take(array, index, 7).page));
        }
        let mut places: Vec<_> = pages.iter().map(|page| page.bytes().addr().get()).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|two| two[0] + PAGE <= two[1]), "they don't overlap");
    }

    #[test]
    fn an_array_that_is_not_small_has_a_run_to_itself() {
        let reserve = Reserve::default();
        let [first, second] = [ArrayId::next(), ArrayId::next()];
        let left = || reserve.0.borrow().iter().map(|(_, pages)| pages.len()).collect::<Vec<_>>();
        for index in 0..SMALL {
            drop([first, second].map(|array| reserve.take(array, index, 7)));
        }
        assert_eq!(left(), [0; 0]);
        for taken in 1..=RUN {
            let next = reserve
                .0
                .borrow()
                .first()
                .and_then(|(_, pages)| pages.last().map(|taken| taken.page.bytes()));
            let given = reserve.take(first, SMALL, 7).page.bytes();
            assert!(taken == 1 || next == Some(given), "the run is given out in its order");
            drop(reserve.take(second, SMALL, 7));
            assert_eq!(left(), [RUN - taken; 2]);
        }
    }
}
