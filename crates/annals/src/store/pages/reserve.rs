//! The reserve: empty pages that a thread makes ahead, for a writer that needs many.
//!
//! The first touch of new memory costs a page fault and its zeroing, a quarter of the time of a bulk
//! load. A thread takes that over, once a store has asked for so many pages that more are to be
//! expected. It keeps at most 1 MiB ready, and sleeps while that isn't used. Where no thread can be
//! had, or it isn't fast enough, the writer makes its own pages.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use crate::store::pages::page::Page;

/// How many pages a store makes itself before the thread begins: 4 MiB.
const PAGES_BEFORE: u32 = 256;
/// How many pages are kept ready.
const READY: usize = 64;

/// Gives empty pages that nobody else has.
#[derive(Debug, Default)]
pub(in crate::store) struct Reserve {
    taken: Cell<u32>,
    /// From the thread, which ends when this is dropped.
    ready: OnceCell<Option<Receiver<Arc<Page>>>>,
}

impl Reserve {
    /// Takes a page, if there is one ready.
    pub(in crate::store) fn take(&self) -> Option<Arc<Page>> {
        if self.taken.get() < PAGES_BEFORE {
            self.taken.set(self.taken.get() + 1);
            return None;
        }
        self.ready.get_or_init(begin).as_ref()?.try_recv().ok()
    }
}

/// Begins the thread; `None` if there can't be one.
fn begin() -> Option<Receiver<Arc<Page>>> {
    let (sender, receiver) = sync_channel(READY);
    let fill = move || while sender.send(Page::blank()).is_ok() {};
    std::thread::Builder::new().name("annals-pages".to_owned()).spawn(fill).ok()?;
    Some(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_once_many_were_asked_for_and_are_nobody_elses() {
        let reserve = Reserve::default();
        assert!((0..PAGES_BEFORE).all(|_| reserve.take().is_none()));
        let mut page = loop {
            if let Some(page) = reserve.take() {
                break page;
            }
            std::thread::yield_now();
        };
        assert!(Arc::get_mut(&mut page).is_some());
    }
}
