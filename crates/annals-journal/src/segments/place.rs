//! A place in all segments, in one number.

use crate::format::{MAX_SEGMENT_LEN, MAX_SEGMENTS};

/// Where something is: in which segment, and at which position there.
///
/// The lower 44 bits are the position, the upper 20 the segment; in the first segment it is the
/// position itself. Larger values are refused where segments are created and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

const POSITION_BITS: u32 = MAX_SEGMENT_LEN.trailing_zeros();
const _: () = assert!(MAX_SEGMENT_LEN.is_power_of_two() && MAX_SEGMENTS.is_power_of_two());
const _: () = assert!(POSITION_BITS + MAX_SEGMENTS.trailing_zeros() == u64::BITS);

impl Place {
    /// Joins a segment's number and a position in it.
    #[inline]
    pub const fn new(segment: u64, position: u64) -> Self {
        Self(segment << POSITION_BITS | position)
    }

    /// Returns the segment's number.
    #[inline]
    pub const fn segment(self) -> u64 {
        self.0 >> POSITION_BITS
    }

    /// Returns the position in the segment.
    #[inline]
    pub const fn position(self) -> u64 {
        self.0 & (MAX_SEGMENT_LEN - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_apart_again() {
        assert_eq!(Place::new(0, 16_384).0, 16_384);
        for segment in [0, 1, MAX_SEGMENTS - 1] {
            for position in [0, 16_384, MAX_SEGMENT_LEN - 1] {
                let place = Place::new(segment, position);
                assert_eq!((place.segment(), place.position()), (segment, position));
            }
        }
    }
}
