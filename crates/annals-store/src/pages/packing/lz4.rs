//! Compression of pages: LZ4 blocks.

use crate::arena::PAGE;
use crate::image::Stored;
use crate::{Error, Result};

/// Compresses the bytes of a page; `None` unless that takes at most so many bytes.
pub(super) fn pack(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    // Most pages that won't shrink are known by their last quarter, which costs a quarter of the time. (The first one of
    // a node of a tree is its slots, which shrink where the keys don't.)
    let sample = bytes.get(bytes.len() / 4 * 3..)?;
    let sixteenths = most * 16 / bytes.len().max(1) + 1;
    if lz4_flex::block::compress(sample).len() * 16 > sample.len() * sixteenths {
        return None;
    }
    let packed = lz4_flex::block::compress(bytes);
    (packed.len() <= most).then_some(packed)
}

/// Restores a compressed page; zeros follow its bytes.
///
/// # Errors
/// `Corrupt` if they are no compressed page.
pub(super) fn unpack(stored: &Stored, packed: &[u8], page: &mut [u8; PAGE]) -> Result<()> {
    let len = lz4_flex::block::decompress_into(packed, page).map_err(|error| {
        Error::corrupt(format!("damaged: the compressed page at {}: {error}", stored.place))
    })?;
    // It copies whole words, and may write beyond the end of what it restores.
    page.iter_mut().skip(len).for_each(|byte| *byte = 0);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]
mod tests {
    use super::unpack;
    use crate::Result;
    use crate::arena::PAGE;
    use crate::image::Stored;
    use crate::pages::packing::Packing;
    use annals_simulated::Rng;

    fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
        Packing::Bytes.pack(bytes).map(|(packed, _)| packed)
    }

    fn restored(packed: &[u8]) -> Result<[u8; PAGE]> {
        let mut page = [0; PAGE];
        unpack(&Stored::default(), packed, &mut page).map(|()| page)
    }

    #[test]
    fn a_page_is_compressed_where_it_saves_half() {
        let mut rng = Rng::new(5);
        for len in [1, 4096, 4097, 8192, 8193, 16000, PAGE] {
            let text: Vec<u8> = (0..len).map(|at| b"opened at the branch "[at % 21]).collect();
            let packed = pack(&text);
            assert_eq!(packed.is_some(), len > 4096, "{len}");
            if let Some(packed) = packed {
                let page = restored(&packed).unwrap();
                assert!(page[..len] == text && page[len..].iter().all(|&byte| byte == 0));
            }
            let noise: Vec<u8> = (0..len).map(|_| rng.number().to_le_bytes()[0]).collect();
            assert_eq!(pack(&noise), None);
        }
    }

    #[test]
    fn zeros_follow_whatever_was_compressed() {
        let mut rng = Rng::new(7);
        for _ in 0..2000 {
            let len = 4097 + rng.index(PAGE - 4097);
            let (period, every) = (1 + rng.index(40), 1 + rng.index(60));
            let text: Vec<u8> = (0..len)
                .map(|at| {
                    if at % every == 0 {
                        rng.number().to_le_bytes()[0]
                    } else {
                        b'a' + u8::try_from(at % period).unwrap()
                    }
                })
                .collect();
            if let Some(packed) = pack(&text) {
                let page = restored(&packed).unwrap();
                assert!(page[..len] == text && page[len..].iter().all(|&byte| byte == 0), "{len}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_page_are_an_error_and_never_a_panic() {
        let long = lz4_flex::block::compress(&[7; PAGE + 1]);
        assert!(restored(&long).is_err(), "longer than a page");
        let mut rng = Rng::new(6);
        let whole = pack(&b"names of accounts".repeat(900)).unwrap();
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            let at = rng.index(bytes.len());
            bytes[at] = rng.number().to_le_bytes()[0];
            bytes.truncate(rng.index(bytes.len() + 1));
            let _ = restored(&bytes);
        }
    }
}
