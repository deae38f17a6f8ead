//! Exact decimal numbers of 128 bits.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The most digits after the point.
pub(crate) const LARGEST_SCALE: u8 = 38;

/// An exact number with `SCALE` digits after the point, 0 to 38: a whole number of units of 10^-`SCALE`, which has 128
/// bits.
///
/// Its text has exactly `SCALE` digits after the point. A text with more is an error, and so is a number that 128 bits
/// can't hold: nothing is ever rounded but by [`round`](Self::round). Numbers of different scales are different types.
///
/// ```
/// use annals_schema::Decimal;
///
/// let price: Decimal<2> = "19.9".parse().unwrap();
/// let rate: Decimal<3> = "0.075".parse().unwrap();
/// assert_eq!(price.to_string(), "19.90");
/// assert_eq!(price.checked_add(Decimal::from_units(10)), "20.00".parse().ok());
///
/// let tax: Decimal<5> = price.checked_mul(rate).unwrap();
/// assert_eq!(tax.to_string(), "1.49250");
/// assert_eq!(tax.round::<2>(), "1.49".parse().ok());
/// assert!("0.001".parse::<Decimal<2>>().is_err());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)] // as its units
pub struct Decimal<const SCALE: u8>(i128);

/// A text that is no decimal number of a scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecimalError {
    text: String,
    scale: u8,
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a decimal: {}", self.text, how_to_write(self.scale))
    }
}

impl std::error::Error for DecimalError {}

/// Describes the form of a decimal.
pub(crate) fn how_to_write(scale: u8) -> String {
    let most = AnyDecimal::new(i128::MAX, scale);
    match scale {
        0 => format!("write a whole number, at most {most}"),
        1 => format!("write a number with at most one digit after the point, at most {most}"),
        _ => format!("write a number with at most {scale} digits after the point, at most {most}"),
    }
}

impl<const SCALE: u8> Decimal<SCALE> {
    /// The largest number.
    pub const MAX: Self = Self(i128::MAX);
    /// The least number.
    pub const MIN: Self = Self(i128::MIN);

    /// Returns the number with this many units of 10^-`SCALE`.
    #[must_use]
    pub const fn from_units(units: i128) -> Self {
        const { assert!(SCALE <= LARGEST_SCALE, "a decimal has at most 38 digits after the point") };
        Self(units)
    }

    /// Returns the number as units of 10^-`SCALE`.
    #[must_use]
    pub const fn units(self) -> i128 {
        self.0
    }

    /// Returns the sum; `None` if 128 bits can't hold it.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Returns the difference; `None` if 128 bits can't hold it.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns the negative number; `None` if 128 bits can't hold it.
    #[must_use]
    pub fn checked_neg(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }

    /// Returns the exact product; `None` if it has more than `PRODUCT` digits after the point, or 128 bits can't hold
    /// it.
    #[must_use]
    pub fn checked_mul<const OTHER: u8, const PRODUCT: u8>(
        self,
        other: Decimal<OTHER>,
    ) -> Option<Decimal<PRODUCT>> {
        let units = self.0.checked_mul(other.0)?;
        rescale(units, u32::from(SCALE) + u32::from(OTHER), PRODUCT.into()).map(Decimal)
    }

    /// Returns the sum of numbers; `None` if 128 bits can't hold it.
    #[must_use]
    pub fn checked_sum(numbers: impl IntoIterator<Item = Self>) -> Option<Self> {
        numbers.into_iter().try_fold(Self(0), Self::checked_add)
    }

    /// Returns the same number with another scale; `None` if it has more digits than that, or 128 bits can't hold it.
    #[must_use]
    pub fn rescale<const OTHER: u8>(self) -> Option<Decimal<OTHER>> {
        rescale(self.0, SCALE.into(), OTHER.into()).map(Decimal)
    }

    /// Returns the nearest number of another scale, the even one of two; `None` if 128 bits can't hold it.
    #[must_use]
    pub fn round<const OTHER: u8>(self) -> Option<Decimal<OTHER>> {
        let Some(surplus) = SCALE.checked_sub(OTHER).filter(|surplus| *surplus > 0) else {
            return self.rescale();
        };
        // Scales up to 38 differ by a power that 128 bits hold.
        let unit = 10_i128.checked_pow(surplus.into())?;
        let (whole, rest) = (self.0.div_euclid(unit), self.0.rem_euclid(unit));
        let up = match rest.cmp(&(unit - rest)) {
            Ordering::Less => 0,
            Ordering::Equal => whole & 1,
            Ordering::Greater => 1,
        };
        whole.checked_add(up).map(Decimal)
    }
}

/// Returns units of one scale as units of another, if there is a whole number of them.
fn rescale(units: i128, scale: u32, other: u32) -> Option<i128> {
    if scale <= other {
        return units.checked_mul(10_i128.checked_pow(other - scale)?);
    }
    match 10_i128.checked_pow(scale - other) {
        Some(unit) => (units % unit == 0).then_some(units / unit),
        None => (units == 0).then_some(0),
    }
}

impl<const SCALE: u8> fmt::Display for Decimal<SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        AnyDecimal::from(*self).fmt(f)
    }
}

impl<const SCALE: u8> fmt::Debug for Decimal<SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<const SCALE: u8> FromStr for Decimal<SCALE> {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        AnyDecimal::parse(text, SCALE).map(|number| Self(number.units()))
    }
}

/// An exact number whose scale is a value: that of a field of any `decimal(scale)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnyDecimal {
    /// The units, as bytes, so that values of fields don't become larger and aligned to 16 bytes.
    units: [u8; 16],
    scale: u8,
}

impl AnyDecimal {
    /// Returns the number with this many units of 10^-`scale`.
    #[must_use]
    pub const fn new(units: i128, scale: u8) -> Self {
        Self { units: units.to_le_bytes(), scale }
    }

    /// Returns the number as units of 10^-[`scale`](Self::scale).
    #[must_use]
    pub const fn units(self) -> i128 {
        i128::from_le_bytes(self.units)
    }

    /// Returns the number of digits after the point.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Reads a number with at most `scale` digits after the point.
    ///
    /// # Errors
    /// It is no number, has more digits, or 128 bits can't hold it.
    pub fn parse(text: &str, scale: u8) -> Result<Self, DecimalError> {
        let wrong = || DecimalError { text: crate::shorten(text).into_owned(), scale };
        let units = parse_units(text, scale.into()).ok_or_else(wrong)?;
        Ok(Self::new(units, scale))
    }
}

fn parse_units(text: &str, scale: usize) -> Option<i128> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > scale || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    format!("{sign}{whole}{fraction:0<scale$}").parse().ok()
}

impl<const SCALE: u8> From<Decimal<SCALE>> for AnyDecimal {
    fn from(number: Decimal<SCALE>) -> Self {
        Self::new(number.0, SCALE)
    }
}

impl<const SCALE: u8> TryFrom<AnyDecimal> for Decimal<SCALE> {
    type Error = DecimalError;

    /// Fails if the number has another scale.
    fn try_from(number: AnyDecimal) -> Result<Self, DecimalError> {
        match number.scale == SCALE {
            true => Ok(Self(number.units())),
            false => Err(DecimalError { text: number.to_string(), scale: SCALE }),
        }
    }
}

impl Ord for AnyDecimal {
    /// Compares the numbers of one scale; those of different scales by their scale.
    fn cmp(&self, other: &Self) -> Ordering {
        self.scale.cmp(&other.scale).then(self.units().cmp(&other.units()))
    }
}

impl PartialOrd for AnyDecimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AnyDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, scale) = (self.units(), usize::from(self.scale));
        let digits = format!("{:0>1$}", units.unsigned_abs(), scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        f.pad_integral(units >= 0, "", &format!("{whole}{point}{fraction}"))
    }
}

impl fmt::Debug for AnyDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
