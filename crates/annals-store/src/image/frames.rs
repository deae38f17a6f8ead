//! Key frames: older roots that the image keeps, from which the past is read.
//!
//! A root lists the key frames that are kept with it. When the next root is published, the previous one becomes one
//! of them, unless the journal has hardly grown since the last. The list is thinned until the space of key frames
//! alone is within the budget. Thinning removes the one that leaves the smallest gap, so that the others divide the
//! journal evenly: the replay to reach a moment doesn't depend on its age.
//!
//! Invariants
//! 1. A listed root is older than the one that lists it, and was once the newest.
//! 2. The space of a listed root isn't overwritten: the root is treated as pinned.
//! 3. An unreadable list is treated as empty. The space is then found without those roots, and the next list is a new
//!    one.

use std::io;
use std::sync::Arc;

use super::Catalog;
use super::create::open_file;
use super::file::{HeldRoots, Image};
use super::format::{FRAMES_HEAD_LEN, FRAMES_MAGIC, Identity, MAX_FRAMES, ROOT_LEN, Root};
use super::open::{Judging, check_identity, read_header, verify_written};
use super::pin::RootPin;
use super::publish::Draft;
use super::roots::Chosen;
use super::space::Space;
use super::stored::is_damage;
use super::stored::{Source as _, Stored};
use crate::{Error, ErrorKind, Result};
use annals_storage::sync::lock;
use annals_storage::{Access, Clock, Directory, step};

/// How many key frames are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFrames {
    /// How much of the image only they may reach, in bytes; none: half of what the newest
    /// root does, and a single one as much.
    pub budget: Option<u64>,
    /// How much the journal grows from one to the next, at least, in bytes.
    pub spacing: u64,
}

impl Default for KeyFrames {
    /// Returns a spacing that takes some milliseconds to replay.
    fn default() -> Self {
        Self::new()
    }
}

impl KeyFrames {
    /// Returns no key frames.
    #[inline]
    pub const fn new() -> Self {
        Self { budget: None, spacing: 256 << 10 }
    }
}

/// How much key frames may have if nothing was said and half of the newest root is less, in bytes.
const LEAST_BUDGET: u64 = 4 << 20;

/// An older root, or the newest, that is pinned and open for reading.
#[derive(Debug)]
pub struct KeyFrame {
    /// The image, as if that root were its newest; for reading only.
    pub image: Image,
    /// The root.
    pub root: Root,
    /// The contents of its catalog.
    pub catalog: Catalog,
    /// Keeps the root's space from being overwritten.
    pub pin: RootPin,
}

/// Encodes a list; `header` is the hash of the image's header.
pub(super) fn encode(frames: &[Root], header: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAMES_HEAD_LEN + frames.len() * ROOT_LEN);
    out.extend_from_slice(&FRAMES_MAGIC);
    out.extend_from_slice(&u32::try_from(frames.len()).unwrap_or(u32::MAX).to_le_bytes());
    frames.iter().for_each(|frame| out.extend_from_slice(&frame.encode(header)));
    out
}

/// Decodes a list; `None` if it is none of this image, or damaged.
fn decode(bytes: &[u8], header: u64) -> Option<Vec<Root>> {
    let (head, roots) = bytes.split_first_chunk::<FRAMES_HEAD_LEN>()?;
    let (magic, count) = head.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(count.try_into().ok()?)).ok()?;
    let (roots, rest) = roots.as_chunks::<ROOT_LEN>();
    if *magic != FRAMES_MAGIC || roots.len() != count || !rest.is_empty() || count > MAX_FRAMES {
        return None;
    }
    let frames: Option<Vec<_>> = roots.iter().map(|root| Root::decode(root, header)).collect();
    frames.filter(|frames| frames.is_sorted_by(|a, b| a.number < b.number))
}

/// Returns the length of the journal between two roots, as far as known: if one is in a later segment, from the
/// beginning of that.
const fn gap(from: Option<&Root>, to: (u64, u64)) -> u64 {
    match from {
        Some(from) if from.segment == to.0 => to.1.saturating_sub(from.point.position),
        _ => to.1,
    }
}

/// Returns the place of the root without which the widest gap that this makes is the smallest.
fn least_missed(frames: &[Root], next: (u64, u64)) -> Option<usize> {
    let wide = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| frames.get(before));
        let behind = frames.get(at + 1).map_or(next, |root| (root.segment, root.point.position));
        gap(before, behind)
    };
    (0..frames.len()).min_by_key(|&at| wide(at))
}

impl Image {
    /// Reads the list of the key frames of a root; empty if it can't be read.
    pub fn frames_of(&self, root: &Root) -> Arc<[Root]> {
        let read = || {
            let stored = root.frames?;
            let len = usize::try_from(stored.len).ok()?;
            if len > FRAMES_HEAD_LEN + MAX_FRAMES * ROOT_LEN {
                return None;
            }
            let mut bytes = vec![0; len];
            self.read(&stored, &mut bytes).ok()?;
            let frames = decode(&bytes, self.header)?;
            frames.iter().all(|frame| frame.number < root.number).then_some(frames)
        };
        read().unwrap_or_default().into()
    }

    /// Opens the newest root at or before a moment, which `is_before` tests by the segment and the transaction of
    /// each: a key frame, or one of the two on disk. `None` if there is none, or no image of this journal.
    ///
    /// Cost: reads the head and the list of key frames, and the catalog of the chosen one. If the last backfill may
    /// be incomplete, also reads all that it wrote.
    ///
    /// # Errors
    /// `Io`; `Unsupported` where the system has no pins. An image that makes no sense is none.
    pub fn frame<'d>(
        directory: &Arc<dyn Directory>,
        name: &str,
        identity: &Identity,
        clock: &dyn Clock,
        how: impl Into<Judging<'d>>,
        is_before: &dyn Fn(&Root) -> bool,
    ) -> Result<Option<KeyFrame>> {
        const TRIES: usize = 100;
        let how = how.into();
        let mut damaged = Vec::new();
        for _ in 0..TRIES {
            let Some(storage) = open_file(&**directory, name, Access::Read)? else {
                return Ok(None);
            };
            let header = read_header(&*storage, &directory.display(name));
            let header = header.and_then(|header| {
                check_identity(&header.identity, identity).map(|()| header.hash())
            });
            let header = match header {
                Err(error) if error.kind() == ErrorKind::Io || error.is_remote() => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
                Ok(header) => header,
            };
            let mut image = Self::new(directory, storage, name, Access::Read, header);
            // Chosen as in an opening, since the space of roots listed by an older root may have been overwritten.
            if let Some(damage) = how.damage {
                image = image.noting_in(damage);
            }
            let told = image.roots()?;
            let chosen = match told.choose(image.len()?, &mut |chosen| match chosen.is_whole {
                true => Ok(()),
                false => verify_written(&image, &chosen.root),
            }) {
                Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
                chosen => chosen?,
            };
            let (listed, other) = (image.frames_of(&chosen.root), told.other(&chosen));
            let all = listed.iter().chain(&other).chain([&chosen.root]);
            let fits = all.filter(|root| is_before(root) && !damaged.contains(&root.number));
            let Some(&root) = fits.max_by_key(|root| root.number) else { return Ok(None) };
            let pin = image.pin(root.number, clock).map_err(|error| match error.kind() {
                io::ErrorKind::Unsupported => Error::new(ErrorKind::Unsupported, "no pins"),
                _ => image.io("can't pin a root", error),
            })?;
            // Later publishers see the pin.
            if image.roots()? != told {
                continue;
            }
            match image.judge(&root, &how) {
                Ok(catalog) => {
                    let newest = Some(Chosen { root, slot: 0, is_whole: true });
                    *lock(&image.held) = HeldRoots { newest, ..HeldRoots::default() };
                    return Ok(Some(KeyFrame { image, root, catalog, pin }));
                }
                Err(error) if is_damage(&error) => damaged.push(root.number),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Draft<'_> {
    /// Decides which key frames the new root lists, for its position in the journal (segment and position): the
    /// existing ones that `are_read` still, and the newest root, as many as the rule allows. Returns the list to be
    /// stored, and the unreachable parts of the old one; or that the list stays.
    pub fn choose_frames(
        &mut self,
        rule: KeyFrames,
        next: (u64, u64),
        are_read: &dyn Fn(&Root) -> bool,
    ) -> Frames {
        let before = self.held.frames.clone().unwrap_or_default();
        let bad = self.image.all_bad();
        let is_sound = |root: &Root| {
            let reaches = |space: &Space| {
                bad.iter().any(|stored| space.is_reached(stored, root.number, self.number))
            };
            step!(DamagedFrameListed, !self.space().is_some_and(reaches), else true)
        };
        let stays = |root: &&Root| are_read(root) && is_sound(root);
        let mut frames: Vec<_> = before.iter().filter(stays).copied().collect();
        let newest = self.held.newest.map(|newest| newest.root);
        let is_due = |root: &Root| {
            gap(frames.last(), (root.segment, root.point.position)) >= rule.spacing && stays(&root)
        };
        frames.extend(newest.filter(is_due));
        let live = self.space().map_or(0, |space| space.live_bytes());
        // Where every page changes, even a single one takes as much as the newest root: it still halves the replay.
        let budget = |count: usize| {
            let usual = if count == 1 { live } else { live / 2 };
            rule.budget.unwrap_or_else(|| usual.max(LEAST_BUDGET))
        };
        let number = self.number();
        let held = |frames: &[Root]| {
            let numbers: Vec<_> = frames.iter().map(|root| root.number).collect();
            self.space().map_or(0, |space| space.held_by(&numbers, number))
        };
        while frames.len() > MAX_FRAMES
            || (!frames.is_empty() && held(&frames) > budget(frames.len()))
        {
            let Some(at) = least_missed(&frames, next) else { break };
            frames.remove(at);
        }
        let old = newest.and_then(|newest| newest.frames);
        self.frames = frames.into();
        match old {
            _ if self.frames.is_empty() => Frames { keep: None, store: None, leave: old },
            Some(old) if self.frames == before => {
                Frames { keep: Some(old), store: None, leave: None }
            }
            _ => {
                let store = Some(encode(&self.frames, self.image.header));
                Frames { keep: None, store, leave: old }
            }
        }
    }
}

/// The decision about the list of key frames.
#[derive(Debug, Default)]
pub struct Frames {
    /// The list stays where it is.
    pub keep: Option<Stored>,
    /// A list to be stored.
    pub store: Option<Vec<u8>>,
    /// The list that the new root doesn't reach any more.
    pub leave: Option<Stored>,
}
