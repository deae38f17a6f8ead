//! Features by name, and the refusal of files that need some which this version doesn't have.

use annals_storage::{Error, ErrorKind, Result};

use super::format::{
    self, FEATURE_COMPRESSED, FEATURE_ENCRYPTED, FEATURE_ERASED, FEATURE_EVENTS, Header,
};

/// The incompatible features that this version has.
pub(crate) const KNOWN: u64 = FEATURE_ERASED;

/// The names of incompatible features: the reserved ones are those of later versions.
const NAMES: [(u64, &str); 4] = [
    (FEATURE_ERASED, "erased values"),
    (FEATURE_ENCRYPTED, "encryption"),
    (FEATURE_COMPRESSED, "compressed frames"),
    (FEATURE_EVENTS, "further types and events"),
];

/// Lists the features of a mask: the bits with their names, as far as they have one.
fn list(mask: u64, names: &[(u64, &str)]) -> String {
    let bits = (0..u64::BITS).filter(|bit| mask & (1 << bit) != 0);
    let named = bits.map(|bit| match names.iter().find(|(feature, _)| *feature == 1 << bit) {
        Some((_, name)) => format!("bit {bit} ({name})"),
        None => format!("bit {bit}"),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Refuses files that this version can't read.
pub fn refuse_reading(header: &Header, name: &str) -> Result<()> {
    let unsupported = |what: String| {
        let message = format!("{name}: {what}: use a newer version of Annals");
        Err(Error::new(ErrorKind::Unsupported, message))
    };
    if header.version > format::VERSION {
        let (has, reads) = (header.version, format::VERSION);
        return unsupported(format!("it has format {has}, and this program reads format {reads}"));
    }
    let unknown = header.incompatible & !KNOWN;
    if unknown != 0 {
        return unsupported(format!(
            "it needs features that this program doesn't have: {} of the incompatible ones",
            list(unknown, &NAMES)
        ));
    }
    if header.cipher != 0 {
        let cipher = header.cipher;
        return unsupported(format!(
            "it is encrypted with cipher {cipher}, which this program doesn't have"
        ));
    }
    Ok(())
}

/// Refuses to write a journal with features that only a reader may ignore.
pub(crate) fn refuse_writing(header: &Header, name: &str) -> Result<()> {
    if header.read_only_compatible == 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "{name}: writing it needs features that this program doesn't have: {} of the read-only compatible ones: \
             open it read-only, or use a newer version of Annals",
            list(header.read_only_compatible, &[])
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_named() {
        assert_eq!(list(0, &NAMES), "");
        assert_eq!(list(1 << 63, &NAMES), "bit 63");
        let all = "bit 0 (erased values), bit 1 (encryption), bit 2 (compressed frames), bit 3 (further types and \
                   events), bit 4";
        assert_eq!(list(0b1_1111, &NAMES), all);
    }
}
