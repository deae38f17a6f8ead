//! Memory for frames that are read, verified and sent. Large buffers are few, and are used again: a new one would be zeroed, and
//! mapped page by page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many large buffers are lent at a time: a slow reader holds one.
const MOST: usize = 4;
/// So many are kept while nobody needs them.
const KEPT: usize = 2;
/// Up to so many bytes have memory of their own.
pub(crate) const SMALL: usize = 64 << 10;

/// The large buffers of a server.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Pool>);

#[derive(Debug, Default)]
struct Pool {
    free: Vec<Vec<u8>>,
    lent: usize,
}

/// Bytes in a buffer, which goes back when the last part of them was sent.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) bytes: Vec<u8>,
    /// `None` for a small one.
    home: Option<Arc<Buffers>>,
}

impl Buffers {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a buffer for so many bytes, whatever it holds; `None` if too many are lent.
    pub(crate) fn lend(self: &Arc<Self>, count: usize) -> Option<Lent> {
        if count <= SMALL {
            return Some(Lent { bytes: Vec::with_capacity(count), home: None });
        }
        let mut pool = self.pool();
        if pool.lent >= MOST {
            return None;
        }
        pool.lent += 1;
        Some(Lent { bytes: pool.free.pop().unwrap_or_default(), home: Some(Arc::clone(self)) })
    }
}

impl Lent {
    /// Puts bytes into it: those of the buffer that it lent.
    pub(crate) fn with(mut self, bytes: Vec<u8>) -> Self {
        self.bytes = bytes;
        self
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = &self.home else { return };
        let mut pool = home.pool();
        pool.lent -= 1;
        if pool.free.len() < KEPT {
            pool.free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_buffer_is_lent_again_when_its_last_part_is_gone() {
        let buffers = Arc::new(Buffers::default());
        let lend = |count| buffers.lend(count);
        let mut lent = lend(SMALL + 1).unwrap();
        lent.bytes = vec![1; SMALL + 1];
        let mut bytes = Bytes::from_owner(lent);
        let part = bytes.split_off(100);
        drop(bytes);
        let others: Vec<_> = (1..MOST).map(|_| lend(SMALL + 1).unwrap()).collect();
        assert!(lend(SMALL + 1).is_none(), "somebody still has a part of the first");
        assert!(lend(SMALL).is_some());
        assert_eq!(part, vec![1; SMALL - 99]);
        drop(part);
        assert_eq!(lend(SMALL + 1).unwrap().bytes.len(), SMALL + 1);
        drop(others);
        let pool = buffers.pool();
        assert_eq!((pool.lent, pool.free.len()), (0, KEPT));
    }
}
