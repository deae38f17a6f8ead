//! Permits that many share, of which nobody has more than a part: places for work, and units of memory.
//!
//! Invariants
//! 1. One who asks waits for a permit of their own part first, and only then for one of all: so a queue of one holds up
//!    nobody else.
//! 2. A part without permits that are held is forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits, and the parts of those who ask.
#[derive(Debug)]
pub(crate) struct Fair {
    all: Arc<Semaphore>,
    most: u32,
    parts: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// Permits that are held. The default holds none.
#[derive(Debug, Default)]
pub(crate) struct Taken(Option<[OwnedSemaphorePermit; 2]>);

impl Fair {
    /// Begins with so many permits, of which one who asks has `most` at a time.
    pub(crate) fn new(count: u32, most: u32) -> Self {
        let all = Arc::new(Semaphore::new(count as usize));
        Self { all, most: most.min(count), parts: Mutex::default() }
    }

    /// Returns the most permits that one who asks can have.
    pub(crate) const fn most(&self) -> u32 {
        self.most
    }

    fn part(&self, who: &Arc<str>) -> Arc<Semaphore> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(who).and_then(Weak::upgrade) {
            return part;
        }
        parts.retain(|_, part| part.strong_count() > 0);
        let part = Arc::new(Semaphore::new(self.most as usize));
        parts.insert(Arc::clone(who), Arc::downgrade(&part));
        part
    }

    /// Waits for permits; `None` if they are more than one can ever have.
    pub(crate) async fn acquire(&self, who: &Arc<str>, count: u32) -> Option<Taken> {
        if count > self.most {
            return None;
        }
        let own = self.part(who).acquire_many_owned(count).await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_many_owned(count).await.ok()?;
        Some(Taken(Some([own, of_all])))
    }

    /// Takes permits that are free now.
    pub(crate) fn try_acquire(&self, who: &Arc<str>, count: u32) -> Option<Taken> {
        let own = self.part(who).try_acquire_many_owned(count).ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(count).ok()?;
        Some(Taken(Some([own, of_all])))
    }
}

impl Taken {
    /// Adds permits of the same one who asked.
    pub(crate) fn merge(&mut self, more: Self) {
        let Some([own, of_all]) = more.0 else { return };
        match &mut self.0 {
            Some([mine, mine_of_all]) => {
                mine.merge(own);
                mine_of_all.merge(of_all);
            }
            none => *none = Some([own, of_all]),
        }
    }

    /// Takes so many of them, or all that there are.
    pub(crate) fn split(&mut self, count: usize) -> Self {
        let count = count.min(self.count());
        let split =
            self.0.as_mut().and_then(|[own, of_all]| own.split(count).zip(of_all.split(count)));
        Self(split.map(|(own, of_all)| [own, of_all]))
    }

    /// Releases what is more than so many.
    pub(crate) fn shrink_to(&mut self, count: usize) {
        let more = self.count().saturating_sub(count);
        for permit in self.0.iter_mut().flatten() {
            drop(permit.split(more));
        }
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |[own, _]| own.num_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_who_asks_for_much_holds_up_nobody_else() {
        let (fair, one, other) = (Fair::new(4, 2), Arc::from("one"), Arc::from("other"));
        let mut held = fair.try_acquire(&one, 1).unwrap();
        held.merge(fair.acquire(&one, 1).await.unwrap());
        assert_eq!(held.count(), 2);
        assert!(fair.try_acquire(&one, 1).is_none(), "its part is used up");
        assert!(fair.acquire(&one, 3).await.is_none(), "more than a part is never there");
        let waiting = fair.acquire(&one, 1);
        tokio::pin!(waiting);
        let late = tokio::time::timeout(std::time::Duration::from_secs(1), &mut waiting).await;
        assert!(late.is_err());
        let others = fair.acquire(&other, 2).await.unwrap();
        drop(held);
        assert!(waiting.await.is_some(), "what is given back is taken by who waits");
        drop(others);
        let mut held = fair.try_acquire(&other, 2).unwrap();
        let part = held.split(1);
        assert_eq!((held.count(), part.count(), held.split(3).count()), (1, 1, 1));
        drop(part);
        assert!(fair.try_acquire(&other, 2).is_some(), "what was split is given back by its parts");
        assert_eq!(fair.parts.lock().unwrap().len(), 1, "who has nothing is forgotten");
    }
}
