//! Keys of requests: two requests with the same one don't run at the same time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::answer::{Answer, Refusal};

/// The most characters of a key.
const LONGEST: usize = 200;

/// The keys of the requests that run now.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    running: Mutex<BTreeSet<String>>,
    ended: Notify,
}

/// A key whose request runs: until this is dropped, others with the same key wait.
#[derive(Debug)]
pub(crate) struct Key {
    keys: Arc<Keys>,
    text: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Keys {
    /// Takes a key; waits while another request has it.
    pub(crate) async fn enter(self: &Arc<Self>, text: &str) -> Answer<Key> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > LONGEST || !is_plain {
            let message = format!(
                "Idempotency-Key: write 1 to {LONGEST} letters, digits or signs without spaces, as a UUID"
            );
            return Err(Refusal::bad(message));
        }
        loop {
            let ended = self.ended.notified();
            if self.running().insert(text.to_owned()) {
                return Ok(Key { keys: Arc::clone(self), text: text.to_owned() });
            }
            ended.await;
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.keys.running().remove(&self.text);
        self.keys.ended.notify_waiters();
    }
}
