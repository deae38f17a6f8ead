//! Keys of requests: two requests with the same one don't run at the same time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use annals_tools::requests::{LONGEST_KEY, is_key};
use tokio::sync::Notify;

use crate::answer::{Answer, Refusal};

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

impl Key {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Keys {
    /// Takes a key; waits while another request has it.
    pub(crate) async fn enter(self: &Arc<Self>, text: &str) -> Answer<Key> {
        if !is_key(text) {
            let message = format!(
                "Idempotency-Key: write 1 to {LONGEST_KEY} letters, digits or signs without spaces, as a UUID"
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
