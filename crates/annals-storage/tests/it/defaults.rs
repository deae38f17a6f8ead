//! What a storage does that implements no more than it must.

use std::io;
use std::sync::Arc;

use annals_storage::{Access, Directory, Hold, Lock, MemoryDirectory, Storage};

/// Bytes that nobody can change.
#[derive(Debug)]
struct Bytes(&'static [u8]);

impl Storage for Bytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// A view of a file that changes nothing of it.
#[derive(Debug)]
struct View(Arc<dyn Storage>);

impl Storage for View {
    fn beneath(&self) -> Option<&dyn Storage> {
        Some(&*self.0)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }
}

#[test]
fn bytes_can_be_read_and_nothing_else() {
    let bytes = Bytes(b"content");
    assert!(!bytes.is_empty().unwrap() && Bytes(b"").is_empty().unwrap());
    let denied = |result: io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    };
    denied(bytes.write_at(0, b"x"));
    denied(bytes.set_len(3));
    denied(bytes.flush());
    denied(bytes.try_lock(Lock::Head, Hold::Exclusive).map(drop));
    assert!(bytes.try_lock(Lock::Head, Hold::Shared).unwrap(), "each shared lock is free");
    bytes.unlock(Lock::Head).unwrap();
    assert_eq!(bytes.holder(Lock::Head), None);
    assert_eq!(bytes.oldest_pin(0..9).unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert!(!bytes.has_fixed_len() && bytes.is_linked().unwrap() && !bytes.is_removed().unwrap());
    assert!(bytes.may_have_other_names().unwrap(), "it can't be known");
}

#[test]
fn a_view_has_the_changes_locks_and_names_of_its_file() {
    let directory = MemoryDirectory::new();
    let view = View(directory.create("file").unwrap());
    let other = directory.open("file", Access::Write).unwrap();
    view.write_at(0, b"content").unwrap();
    view.set_len(4).unwrap();
    view.flush().unwrap();
    assert_eq!(other.len().unwrap(), 4);
    assert!(View(directory.open("file", Access::Read).unwrap()).flush().is_err());

    assert!(view.try_lock(Lock::Pin(3), Hold::Exclusive).unwrap());
    assert!(!other.try_lock(Lock::Pin(3), Hold::Shared).unwrap());
    assert_eq!(view.holder(Lock::Pin(3)), other.holder(Lock::Pin(3)));
    assert_eq!(view.oldest_pin(0..9).unwrap(), Some(3));
    assert_eq!(view.oldest_pin(4..9).unwrap(), None);
    view.unlock(Lock::Pin(3)).unwrap();
    assert!(other.try_lock(Lock::Pin(3), Hold::Shared).unwrap());
    assert!(!view.try_lock(Lock::Pin(3), Hold::Exclusive).unwrap());

    assert!(view.is_linked().unwrap() && !view.may_have_other_names().unwrap());
    directory.link("file", "second").unwrap();
    assert!(view.may_have_other_names().unwrap());
    directory.remove("file").unwrap();
    assert!(!view.is_linked().unwrap());
    view.renamed("second");
    assert!(view.is_linked().unwrap());
}
