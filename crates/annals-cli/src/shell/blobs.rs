//! The commands about blobs.

use std::path::Path;

use annals::{Blob, Error, Result, Transaction, Type, Value, ValueRef};
use annals_schema::Token;

use super::display::harmless;
use super::screen::Screen;
use super::words::{Words, number};
use crate::output::count;
use crate::present::Present;
use crate::{files, language};

/// How many bytes a terminal is shown if nothing else is said.
const SHOWN: u64 = 1000;
/// How many bytes are shown at once: they are all in memory.
const MOST: u64 = 1 << 30;

/// `write_blob "TEXT"|0xHEX`
pub(crate) fn write(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    screen: &mut Screen,
) -> Result<()> {
    let [bytes] = words.exactly()?;
    let blob = transaction.write_blob(bytes_of(bytes)?.as_slice())?;
    screen.output.line(&language::value_text(ValueRef::Blob(blob)))
}

/// `append_blob "TEXT"|0xHEX`
pub(crate) fn append(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    _screen: &mut Screen,
) -> Result<()> {
    let [bytes] = words.exactly()?;
    transaction.append_blob(&bytes_of(bytes)?).map(drop)
}

/// `write_blob_file "PATH"`
pub(crate) fn write_file(
    transaction: &mut Transaction<'_>,
    words: &Words<'_>,
    screen: &mut Screen,
) -> Result<()> {
    let [path] = words.exactly()?;
    let blob = transaction.write_blob(files::open_plain(Path::new(&*path.text))?)?;
    screen.output.line(&language::value_text(ValueRef::Blob(blob)))
}

/// `read_blob BLOB [OFFSET] [COUNT]`
pub(crate) fn read(present: &Present<'_>, words: &Words<'_>, screen: &mut Screen) -> Result<()> {
    let (blob, offset, most) = match words.arguments() {
        [blob] => (blob, None, None),
        [blob, offset] => (blob, Some(offset), None),
        [blob, offset, most] => (blob, Some(offset), Some(most)),
        _ => return Err(words.misused()),
    };
    let blob = blob_named(blob)?;
    let offset = offset.map_or(Ok(0), |offset| number("OFFSET", offset))?;
    let usual = if screen.width.is_some() { SHOWN } else { u64::MAX };
    let most = most.map_or(Ok(usual), |most| number("COUNT", most))?;
    let mut reader = present.blob(blob)?;
    let len = reader.len();
    let shown = len.saturating_sub(offset).min(most);
    if shown > MOST {
        return Err(Error::invalid(format!(
            "blob:{} has {len} bytes: read at most {MOST} of them at once, with OFFSET and COUNT",
            blob.0
        )));
    }
    let mut bytes = vec![0; usize::try_from(shown).unwrap_or(usize::MAX)];
    let read = reader.read_at(offset, &mut bytes)?;
    bytes.truncate(read);
    screen.output.line(&harmless(&language::bytes_text(&bytes)))?;
    if shown == len {
        return Ok(());
    }
    screen.remark(&format!("{shown} of {}, from {offset} on", count(len, "byte")))
}

/// Reads the bytes of a blob: a text in quotes, or `0x` and hexadecimal digits.
fn bytes_of(token: &Token<'_>) -> Result<Vec<u8>> {
    if token.quoted {
        return Ok(token.text.as_bytes().to_vec());
    }
    match annals_schema::parse_value(Type::Bytes, token) {
        Ok(Value::Bytes(bytes)) => Ok(bytes),
        Ok(_) => Err(Error::invalid("a blob is a text in quotes, or 0x and hexadecimal digits")),
        Err(message) => Err(Error::invalid(format!("{message}; or a text in quotes"))),
    }
}

/// Reads the name of a blob.
fn blob_named(token: &Token<'_>) -> Result<Blob> {
    match annals_schema::parse_value(Type::Blob, token) {
        Ok(Value::Blob(blob)) => Ok(blob),
        Ok(_) => Err(Error::invalid("null is no blob")),
        Err(message) => Err(Error::invalid(message)),
    }
}
