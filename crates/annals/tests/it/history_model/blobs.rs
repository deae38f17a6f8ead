//! Random blobs, and reading them at random places.

use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;

use annals::event::MAX_PIECE;
use annals::{Blob, BlobReader, ErrorKind};

use super::model::Model;
use super::statements::{Step, agree};
use crate::store_model::Random;

/// Returns bytes, and then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("no more")),
            count => Ok(count),
        }
    }
}

impl Step<'_, '_> {
    fn bytes(&mut self) -> Vec<u8> {
        let piece = MAX_PIECE as u64;
        let len = match self.random.below(80) {
            0 => self.random.below(4 * piece),
            1 => piece - 1 + self.random.below(3),
            2..6 => self.random.below(5000),
            6..12 => 0,
            _ => self.random.below(40),
        };
        let first = self.random.next();
        let words = (0..len.div_ceil(8)).flat_map(|at| (first ^ at).to_le_bytes());
        words.take(usize::try_from(len).unwrap()).collect()
    }

    pub(super) fn blob(&mut self) {
        let bytes = self.bytes();
        match self.random.below(10) {
            0..7 => {
                let blob = self.tx.write_blob(&bytes[..]).unwrap();
                assert_eq!(blob.0, self.model.blobs.len() as u64 + 1);
                self.model.open_blob = Some(self.model.blobs.len());
                self.model.blobs.push(Rc::new(bytes));
                self.wrote = true;
            }
            7 => self.fail(&bytes),
            _ => self.append(&bytes),
        }
    }

    /// Lets the source of a blob fail. What it gave in whole pieces is in the journal, and its number
    /// is gone.
    fn fail(&mut self, bytes: &[u8]) {
        agree(self.tx.write_blob(Failing(bytes)), Err(ErrorKind::Io));
        let whole = bytes.len() / MAX_PIECE * MAX_PIECE;
        if whole > 0 {
            self.model.blobs.push(Rc::new(bytes[..whole].to_vec()));
            self.wrote = true;
        }
        self.model.open_blob = None;
    }

    fn append(&mut self, bytes: &[u8]) {
        let model = &mut *self.model;
        let open = model.open_blob.filter(|&at| !bytes.is_empty() && !model.blobs[at].is_empty());
        let expected = open.map(drop).ok_or(ErrorKind::Invalid);
        let given = self.tx.append_blob(bytes);
        if let Some(at) = open {
            assert!(given.as_ref().is_ok_and(|blob| blob.0 == at as u64 + 1));
            Rc::make_mut(&mut model.blobs[at]).extend(bytes);
        }
        agree(given, expected);
        self.done(expected);
    }
}

/// Reads some blobs at random places, or all of them wholly.
pub(super) fn read<'a>(
    open: &dyn Fn(Blob) -> annals::Result<BlobReader<'a>>,
    model: &Model,
    random: &mut Random,
    all: bool,
) {
    let count = model.blobs.len() as u64;
    agree(open(Blob(count + 1)).map(drop), Err(ErrorKind::NotFound));
    let some: Vec<_> = (0..4.min(count)).map(|_| 1 + random.below(count)).collect();
    for number in if all { (1..=count).collect() } else { some } {
        let expected = &*model.blobs[usize::try_from(number).unwrap() - 1];
        let mut reader = open(Blob(number)).unwrap();
        assert_eq!(reader.len(), expected.len() as u64, "blob {number}");
        if all {
            assert!(reader.to_vec(usize::MAX).unwrap() == *expected, "blob {number}");
        }
        let at = random.below(expected.len() as u64 + 2);
        let mut buffer = vec![0; usize::try_from(random.below(100_000)).unwrap()];
        let rest = expected.get(usize::try_from(at).unwrap()..).unwrap_or_default();
        let there = &rest[..rest.len().min(buffer.len())];
        let read = reader.read_at(at, &mut buffer).unwrap();
        assert!(buffer[..read] == *there, "blob {number} from {at} on");
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut again = Vec::new();
        reader.read_to_end(&mut again).unwrap();
        assert!(again == rest, "blob {number} from {at} to its end");
    }
}
