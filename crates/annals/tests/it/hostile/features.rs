//! Files that need what this version doesn't have, and what it may ignore in a file.

use annals::journal::format::{HEADER_LEN, Header};
use annals::{ErrorKind, Reader, Recovery};

use super::crafted::{Draft, Frame, TABLE, open_all, refused};
use super::journals::{NAME, content, install, open};

#[test]
fn newer_versions_and_unknown_features_are_refused() {
    let with = |change: fn(&mut Header)| {
        let mut draft = Draft::with_header(change);
        draft.add(&Frame::commit(TABLE));
        draft.bytes
    };
    let unsupported = ErrorKind::Unsupported;
    refused(&with(|header| header.version = 2), "version 2", unsupported, "format 2");
    refused(&with(|header| header.version = u32::MAX), "version 2^32-1", unsupported, "newer");
    for (bit, words) in [
        (63, "doesn't have: bit 63 of the incompatible ones: use a newer version of Annals"),
        (1, "doesn't have: bit 1 (encryption) of the"),
        (2, "doesn't have: bit 2 (compressed frames) of the"),
        (3, "doesn't have: bit 3 (further types and events) of the"),
    ] {
        let mut draft = Draft::with_header(|header| header.incompatible = 1 << bit);
        draft.add(&Frame::commit(TABLE));
        refused(&draft.bytes, "feature", unsupported, words);
        let error = Reader::open(&*install(&draft.bytes), NAME).unwrap_err();
        assert!(error.to_string().contains(words), "to read it, too: {error}");
    }
    let words =
        "encrypted with cipher 1, which this program doesn't have: use a newer version of Annals";
    refused(&with(|header| header.cipher = 1), "cipher", unsupported, words);
    refused(&with(|header| header.version = 0), "version 0", ErrorKind::Corrupt, "no sense");
    refused(&with(|header| header.first_txid = 0), "txid 0", ErrorKind::Corrupt, "no sense");
    let last = |header: &mut Header| header.first_txid = u64::MAX;
    refused(&with(last), "last txid", ErrorKind::Corrupt, "no sense");

    let bytes = with(|header| header.read_only_compatible = 4);
    let words = "doesn't have: bit 2 of the read-only compatible ones: open it read-only";
    refused(&bytes, "can only be read", unsupported, words);
    let reader = Reader::open(&*install(&bytes), NAME).unwrap();
    assert_eq!(reader.read().txid(), annals::Txid(1));

    // What may be ignored is, and stays as it was.
    let bytes = with(|header| {
        header.compatible = 1;
        header.erasure = u64::from_le_bytes([7; 8]);
        header.reserved = [7; 88];
        header.salt = [9; 32];
    });
    assert_eq!(bytes[112..248], [&[9; 32][..], &[0; 8], &[7; 96]].concat());
    let (directory, database) = open_all(&bytes, "compatible").unwrap();
    database.write(|transaction| transaction.comment("more")).unwrap();
    database.close().unwrap();
    assert_eq!(open(&directory, Recovery::Refuse, 4).unwrap().read().txid(), annals::Txid(2));
    assert_eq!(content(&*directory)[..HEADER_LEN], bytes[..HEADER_LEN]);
    // So is what may follow the header and the slots in their blocks.
    let mut sealed = bytes.clone();
    for block in [0, 4096, 8192] {
        sealed[block + 2048..block + 4096].fill(7);
    }
    open_all(&sealed, "key slots").unwrap().1.close().unwrap();
    // Also when a damaged copy is written again.
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    let (directory, database) = open_all(&damaged, "compatible, damaged").unwrap();
    database.close().unwrap();
    assert_eq!(content(&*directory)[..HEADER_LEN], bytes[..HEADER_LEN]);
}
