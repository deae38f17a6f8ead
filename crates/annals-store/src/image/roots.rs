//! The two root slots: their contents, and which may be written next.
//!
//! Invariants
//! 1. A slot's second copy is written only after a flush that covers its first copy and all that its backfill wrote.
//!    So if both are equal, nothing needs verification.
//! 2. The slot of the root that is in use is never the next one to be written.
//! 3. A second copy alone proves nothing: it may be an older root's, whose space was given out since.

use std::cmp::Reverse;
use std::io;

use super::format::{ROOT_AT, ROOT_COPY_AT, Root};
use super::stored::is_damage;
use crate::{Error, ErrorKind, Result};
use annals_storage::Storage;
use annals_storage::slots::{Record, Slots};

/// How much a backfill may have written for its first copy to be verified while an older root is whole.
pub(crate) const VERIFY_AT_MOST: u64 = 16 << 20;

/// Where the two slots are. Roots are written in turn.
pub(crate) const ROOTS: Slots<2> = Slots { at: ROOT_AT, copies_at: ROOT_COPY_AT };

impl Record for Root {
    fn number(&self) -> u64 {
        self.number
    }
}

/// The contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Both copies agree: the root is on permanent storage, with all that it reaches.
    Whole(Root),
    /// Only the first copy has it: the output of its backfill may be incomplete.
    First(Root),
    /// Nothing, but it isn't blank: it is torn.
    Torn,
    /// It was never written.
    Blank,
}

/// The contents of both slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    /// Each slot separately.
    pub(crate) slots: [Slot; 2],
}

/// The root that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The root itself.
    pub(crate) root: Root,
    /// The slot that has it.
    pub(crate) slot: usize,
    /// True if both copies have it, so that it is known to be on permanent storage.
    pub(crate) is_whole: bool,
}

impl Slot {
    /// Returns its root.
    pub(crate) const fn root(&self) -> Option<&Root> {
        match self {
            Self::Whole(root) | Self::First(root) => Some(root),
            Self::Torn | Self::Blank => None,
        }
    }

    fn of([first, second]: [Option<Root>; 2], is_blank: bool) -> Self {
        match first {
            Some(root) if second == first => Self::Whole(root),
            Some(root) => Self::First(root),
            None if is_blank => Self::Blank,
            None => Self::Torn,
        }
    }
}

impl Roots {
    /// Reads both slots.
    pub(crate) fn read(storage: &dyn Storage, header: u64) -> io::Result<Self> {
        let found = ROOTS.read(storage, |bytes| Root::decode(bytes, header))?;
        let ([first, second], [blank, other]) = (found.copies, found.is_blank);
        Ok(Self { slots: [Slot::of(first, blank), Slot::of(second, other)] })
    }

    /// Reads all copies that verify, also those of roots that can't be relied on.
    pub(crate) fn copies(storage: &dyn Storage, header: u64) -> io::Result<Vec<Root>> {
        let found = ROOTS.read(storage, |bytes| Root::decode(bytes, header))?;
        Ok(found.copies.into_iter().flatten().flatten().collect())
    }

    /// Returns the greatest number in a slot, whether its root is usable or not; 0 if there is none.
    pub(crate) fn last_number(&self) -> u64 {
        self.slots.iter().filter_map(Slot::root).map(|root| root.number).max().unwrap_or(0)
    }

    /// Chooses the root to use: the newest that `judge` doesn't refuse. A root in the first copy only, whose backfill
    /// wrote much, is judged only if there is no other. A backfill overwrites the slot of the root before the last
    /// one. The second copy of the last one may not have been flushed yet.
    ///
    /// `judge` verifies the objects of a root; an error of damage drops the root. `len` is the file's length, read
    /// after the slots.
    ///
    /// # Errors
    /// `Corrupt` or `Io` if there is none, with the reason; errors of `judge` that aren't damage.
    pub(crate) fn choose(
        &self,
        len: u64,
        judge: &mut dyn FnMut(&Chosen) -> Result<()>,
    ) -> Result<Chosen> {
        let mut found = self.candidates();
        found.sort_by_key(|chosen| Reverse(chosen.root.number));
        let (first, last): (Vec<_>, Vec<_>) =
            (found.into_iter()).partition(|it| it.is_whole || it.root.bytes <= VERIFY_AT_MOST);
        let mut reason = None;
        for chosen in first.into_iter().chain(last) {
            let cut = || {
                let end = chosen.root.end;
                Error::corrupt(format!("damaged: it has {len} bytes, and its root reaches {end}"))
            };
            match if chosen.root.end <= len { judge(&chosen) } else { Err(cut()) } {
                Ok(()) => return Ok(chosen),
                // A temporary read error may disappear.
                Err(error) if error.kind() == ErrorKind::Io => reason = Some(error),
                Err(error) if is_damage(&error) => _ = reason.get_or_insert(error),
                Err(error) => return Err(error),
            }
        }
        Err(reason.unwrap_or_else(|| {
            Error::corrupt(match self.slots {
                [Slot::Blank, Slot::Blank] => "damaged: it has no root",
                _ => "damaged: neither of its roots verifies",
            })
        }))
    }

    fn candidates(&self) -> Vec<Chosen> {
        let candidate = |(slot, told): (usize, &Slot)| {
            told.root().map(|&root| Chosen { root, slot, is_whole: matches!(told, Slot::Whole(_)) })
        };
        self.slots.iter().enumerate().filter_map(candidate).collect()
    }

    /// Returns the other root, if it is older and on permanent storage: its space isn't overwritten while `chosen` is
    /// the newest. (A newer one is damaged, or may not be on the disk.)
    pub(crate) fn other(&self, chosen: &Chosen) -> Option<Root> {
        match self.slots.get(1 - chosen.slot) {
            Some(Slot::Whole(root)) if root.number < chosen.root.number => Some(*root),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use annals_schema::Txid;

    use super::*;
    use crate::image::Stored;
    use annals_storage::Point;

    /// Makes a root that wrote little, or much; 1000 bytes are reached.
    fn root(number: u64, much: bool) -> Root {
        let bytes = if much { VERIFY_AT_MOST + 1 } else { VERIFY_AT_MOST };
        let point = Point { position: 0, txid: Txid(0), chain: 0 };
        let catalog = Stored::default();
        Root {
            number,
            segment: 0,
            point,
            time: 0,
            catalog,
            end: 1000,
            bytes,
            objects: 1,
            frames: None,
            spared: 0,
        }
    }

    /// Returns the number of the chosen root if the roots in `good` verify, and the numbers that were verified.
    fn chosen(slots: [Slot; 2], good: &[u64]) -> (Option<u64>, Vec<u64>) {
        let mut verified = Vec::new();
        let found = Roots { slots }.choose(1000, &mut |chosen| {
            if chosen.is_whole {
                return Ok(());
            }
            verified.push(chosen.root.number);
            match good.contains(&chosen.root.number) {
                true => Ok(()),
                false => Err(Error::corrupt("damaged: something is missing")),
            }
        });
        if let Err(error) = &found {
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        (found.ok().map(|chosen| chosen.root.number), verified)
    }

    #[test]
    fn the_newest_root_that_can_be_relied_on_is_chosen() {
        let (whole, first) =
            (|number| Slot::Whole(root(number, false)), |number| Slot::First(root(number, false)));
        let much = |number| Slot::First(root(number, true));
        // The slots; which roots verify; which is chosen, and which were verified for that.
        type Case = ([Slot; 2], &'static [u64], Option<u64>, &'static [u64]);
        let cases: [Case; 12] = [
            ([whole(4), whole(5)], &[], Some(5), &[]),
            ([whole(6), whole(5)], &[], Some(6), &[]),
            ([whole(6), first(7)], &[7], Some(7), &[7]),
            ([whole(6), first(7)], &[], Some(6), &[7]),
            ([whole(6), Slot::Torn], &[], Some(6), &[]),
            ([whole(6), much(7)], &[7], Some(6), &[]),
            ([first(6), first(7)], &[6], Some(6), &[7, 6]),
            // The second copy of 6 wasn't flushed when 7 was written.
            ([much(6), first(7)], &[6], Some(6), &[7, 6]),
            ([much(6), much(7)], &[6], Some(6), &[7, 6]),
            ([Slot::Blank, much(1)], &[1], Some(1), &[1]),
            ([first(6), Slot::Torn], &[], None, &[6]),
            ([Slot::Torn, Slot::Blank], &[], None, &[]),
        ];
        for (slots, good, expected, verified) in cases {
            assert_eq!(chosen(slots, good), (expected, verified.to_vec()), "{slots:?}");
        }
    }

    #[test]
    fn a_root_that_reaches_beyond_the_file_is_not_chosen() {
        let cut = |number| Root { end: 1001, ..root(number, false) };
        assert_eq!(chosen([Slot::Whole(root(4, false)), Slot::First(cut(5))], &[5]).0, Some(4));
        assert_eq!(chosen([Slot::Whole(root(4, false)), Slot::Whole(cut(5))], &[]).0, Some(4));
        assert_eq!(chosen([Slot::Whole(cut(4)), Slot::Whole(cut(5))], &[]).0, None);
    }
}
