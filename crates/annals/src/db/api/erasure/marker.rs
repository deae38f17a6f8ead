//! The marker: a file that exists until an erasure has finished, with the names of the files that it removes.
//!
//! Each piece of it fits a sector and begins with the journal's id. So the file is proven to be this journal's
//! (`db::follow::beside`) even if a power cut left only a part of it. The pieces together are a hash, and the names,
//! each with a zero after it, which no name has.

use std::io;

use crate::journal::format::hash;
use crate::storage::Storage;

const PIECE: usize = 512;
const ID: usize = 16;

/// The work of an erasure after it is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The names of the files that are removed.
    pub names: Vec<String>,
    /// True if the bytes of these files and of the old segments are overwritten before the files are removed.
    pub overwrite: bool,
}

/// The entry among the names that means overwriting bytes: no file has this name.
const OVERWRITE: &str = "/";

/// Writes the list, and flushes it.
///
/// # Errors
/// Those of the system.
pub fn write(file: &dyn Storage, id: &[u8; ID], list: &List) -> io::Result<()> {
    let words = list.names.iter().map(String::as_str).chain(list.overwrite.then_some(OVERWRITE));
    let mut names: Vec<u8> = words.flat_map(|name| name.bytes().chain([0])).collect();
    let mut list = hash(&names).to_le_bytes().to_vec();
    list.append(&mut names);
    let pieces = list.chunks(PIECE - ID);
    let bytes: Vec<u8> = pieces.flat_map(|piece| [&id[..], piece].concat()).collect();
    file.write_at(0, &bytes)?;
    file.flush()
}

/// Reads the list; `None` if it isn't whole.
pub(super) fn read(file: &dyn Storage, id: &[u8; ID]) -> io::Result<Option<List>> {
    /// More than all names can have.
    const MOST: u64 = 64 << 20;
    let len = usize::try_from(file.len()?.min(MOST)).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    let pieces: Option<Vec<_>> = bytes.chunks(PIECE).map(|piece| piece.strip_prefix(id)).collect();
    let list = pieces.unwrap_or_default().concat();
    let Some((sum, names)) = list.split_first_chunk() else { return Ok(None) };
    if hash(names) != u64::from_le_bytes(*sum) {
        return Ok(None);
    }
    let names = names.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    let (flags, names): (Vec<_>, Vec<_>) = names.partition(|name| name == OVERWRITE);
    Ok(Some(List { names, overwrite: !flags.is_empty() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Directory, MemoryDirectory};

    #[test]
    fn the_names_are_read_as_they_were_written_and_a_part_of_them_not_at_all() {
        let (directory, id) = (MemoryDirectory::new(), [7; ID]);
        for (number, count) in [0, 1, 40, 400].into_iter().enumerate() {
            let names: Vec<_> = (0..count).map(|name| format!("db.tail-{name}\n")).collect();
            let file = directory.create(&number.to_string()).unwrap();
            let list = List { names, overwrite: count % 2 == 1 };
            write(&*file, &id, &list).unwrap();
            assert_eq!(read(&*file, &id).unwrap(), Some(list));
            assert_eq!(read(&*file, &[8; ID]).unwrap(), None);
            file.write_at(0, &[0; PIECE]).unwrap();
            assert_eq!(read(&*file, &id).unwrap(), None, "a power cut left a part");
        }
    }
}
