//! Universally unique identifiers, and their text form.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The form of a UUID.
pub(crate) const HOW_TO_WRITE_UUIDS: &str =
    "write 32 hexadecimal digits, like 67e55044-10b1-426f-9247-bb680e5fe0c8";

/// Where the text has a hyphen before a byte.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

/// A universally unique identifier: 16 bytes, which are ordered as their text is.
///
/// Its text form is that of RFC 9562. Capital letters, and a text without hyphens, are read too.
///
/// ```
/// use annals_schema::Uuid;
///
/// let id: Uuid = "67E5504410B1426F9247BB680E5FE0C8".parse().unwrap();
/// assert_eq!(id.to_string(), "67e55044-10b1-426f-9247-bb680e5fe0c8");
/// assert_eq!(id.0[0], 0x67);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as its bytes
pub struct Uuid(pub [u8; 16]);

/// A text that is no UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UuidError(String);

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a uuid: {HOW_TO_WRITE_UUIDS}", self.0)
    }
}

impl std::error::Error for UuidError {}

impl Uuid {
    /// Stands for a new UUID of version 7: a transaction that inserts a row with it, or sets a field to it, stores a new one in
    /// its place. It is the default of fields with `default v7`.
    ///
    /// It is a UUID of version 7 of the first millisecond of 1970, without a random bit.
    pub const NEW_V7: Self = Self::v7(0, 0);

    /// Returns the UUID of version 7 with a time, in milliseconds since 1970-01-01T00:00:00Z of which it has the last 48
    /// bits, and 74 random bits, the last ones of a number.
    ///
    /// ```
    /// use annals_schema::Uuid;
    ///
    /// let id = Uuid::v7(1_645_557_742_000, 0xcc3 << 62 | 0x18c4dc0c0c07398f);
    /// assert_eq!(id.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"); // the example of RFC 9562
    /// ```
    #[must_use]
    pub const fn v7(millisecond: u64, random: u128) -> Self {
        let (high, low) = (random >> 62 & 0xfff, random & (u128::MAX >> 66));
        Self::from_u128((millisecond as u128) << 80 | 7 << 76 | high << 64 | 2 << 62 | low)
    }

    /// Returns the UUID whose digits are those of a number.
    #[expect(clippy::big_endian_bytes, reason = "the first digit is the highest one")]
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self(number.to_be_bytes())
    }

    /// Returns the bytes of its cell: those of the UUID, in order.
    #[doc(hidden)]
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns the UUID of a cell.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl From<Uuid> for [u8; 16] {
    fn from(uuid: Uuid) -> Self {
        uuid.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(36);
        for (place, byte) in self.0.iter().enumerate() {
            let hyphen = if HYPHENS.contains(&place) { "-" } else { "" };
            write!(text, "{hyphen}{byte:02x}")?;
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Self, UuidError> {
        parse(text).ok_or_else(|| UuidError(crate::shorten(text).into_owned()))
    }
}

fn parse(text: &str) -> Option<Uuid> {
    let mut digits = text.chars().filter(|c| *c != '-');
    let mut digit = || digits.next()?.to_digit(16);
    let mut uuid = Uuid::default();
    for byte in &mut uuid.0 {
        *byte = u8::try_from(digit()? * 16 + digit()?).ok()?;
    }
    let is_canonical = text.eq_ignore_ascii_case(&uuid.to_string());
    (is_canonical || text.len() == 32).then_some(uuid)
}
