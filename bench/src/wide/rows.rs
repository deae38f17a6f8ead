//! The rows of a wide table: twelve fields, strings of 4 to 200 bytes.

use crate::random::Random;

/// The values of a row, borrowed by or from an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fields<'a> {
    pub(super) code: &'a str,
    pub(super) name: &'a str,
    pub(super) note: Option<&'a str>,
    pub(super) city: &'a str,
    pub(super) year: i16,
    pub(super) level: i32,
    pub(super) quantity: i64,
    pub(super) price: f64,
    pub(super) active: bool,
    /// In microseconds since 1970.
    pub(super) created: i64,
    pub(super) rating: f32,
    /// The id of another row, or of a missing one.
    pub(super) parent: u64,
}

/// The same, as a program has them before it writes them.
#[derive(Clone, Debug)]
pub(super) struct Row {
    code: String,
    name: String,
    note: Option<String>,
    city: String,
    numbers: Fields<'static>,
}

impl Row {
    /// Makes the row of an id in a version. No other row has its code; about ten have its level, and about five its
    /// city and year.
    pub(super) fn new(id: u64, version: u32, rows: u64) -> Self {
        let mut random = Random::new(id ^ u64::from(version) << 40);
        let level = random.below(rows.div_ceil(10));
        let city = random.below(rows.div_ceil(50));
        let note = (random.below(4) > 0).then(|| text(&mut random));
        // An odd factor maps the numbers of 32 bits one to one.
        let scattered = id.wrapping_mul(0x9E37_79B9) & 0xFFFF_FFFF;
        let small = |random: &mut Random, limit| u32::try_from(random.below(limit)).unwrap_or(0);
        Self {
            code: format!("{scattered:08x}{version:08x}"),
            name: text(&mut random),
            note,
            city: format!("city {city}"),
            numbers: Fields {
                code: "",
                name: "",
                note: None,
                city: "",
                year: i16::try_from(small(&mut random, 10)).unwrap_or(0) + 2010,
                level: i32::try_from(level).unwrap_or(i32::MAX),
                quantity: random.below(1 << 40).cast_signed(),
                price: f64::from(small(&mut random, 1_000_000)) / 100.0,
                active: random.below(2) == 1,
                created: random.below(1 << 50).cast_signed(),
                #[allow(clippy::cast_possible_truncation, reason = "it is exact: halves below 5")]
                rating: (f64::from(small(&mut random, 10)) / 2.0) as f32,
                parent: random.below(rows),
            },
        }
    }

    pub(super) const fn set_quantity(&mut self, quantity: i64) {
        self.numbers.quantity = quantity;
    }

    /// Takes the name, the level and the quantity of another.
    pub(super) fn set_three(&mut self, other: &Self) {
        self.name.clone_from(&other.name);
        self.numbers.level = other.numbers.level;
        self.numbers.quantity = other.numbers.quantity;
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        let Self { code, name, note, city, numbers } = self;
        Fields { code, name, note: note.as_deref(), city, ..*numbers }
    }
}

impl Fields<'_> {
    /// Returns a number that nearly every other row would make another one.
    pub(super) fn digest(&self) -> u64 {
        let text = |text: &str| {
            let last = text.as_bytes().last().copied().unwrap_or(0);
            text.len() as u64 + (u64::from(last) << 8)
        };
        let parts = [
            text(self.code),
            text(self.name),
            self.note.map_or(0, text),
            text(self.city),
            u64::from(self.year.cast_unsigned()),
            u64::from(self.level.cast_unsigned()),
            self.quantity.cast_unsigned(),
            self.price.to_bits(),
            self.active.into(),
            self.created.cast_unsigned(),
            self.rating.to_bits().into(),
            self.parent,
        ];
        parts.iter().fold(0, |sum: u64, part| sum.rotate_left(5).wrapping_add(*part))
    }
}

/// Makes a string of 4 to 200 letters.
fn text(random: &mut Random) -> String {
    let len = 4 + random.below(197);
    let letter = |_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0));
    (0..len).map(letter).collect()
}
