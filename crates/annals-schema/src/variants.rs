//! The variants of enums: names with numbers that are never used again.
//!
//! Invariants
//! 1. A variant's number is its place among all that its field ever had. A dropped one keeps its number and its name, for
//!    the rows of the past; its name may be given to a new one.
//! 2. The names of the variants that weren't dropped are distinct, and there is at least one.
//! 3. Equal lists are one in memory, and stay there as long as the process: so a type can be copied, and a value has
//!    its name without its type. A list takes as many bytes as its names.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::names;

/// The variants of an `enum`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variants(&'static List);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct List {
    names: Vec<&'static str>,
    dropped: Vec<bool>,
}

/// All lists, in order.
static LISTS: Mutex<Vec<&'static List>> = Mutex::new(Vec::new());

/// A value of a field of type `enum`: a number, by which values are compared, and its name.
#[derive(Clone, Copy)]
pub struct Variant {
    number: u16,
    /// A reference to the name, so that values of fields don't become larger.
    name: &'static &'static str,
}

impl Variant {
    /// Returns a variant of a number and a name.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(number: u16, name: &'static &'static str) -> Self {
        Self { number, name }
    }

    /// Returns its number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.number
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Variant {}

impl PartialOrd for Variant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Variant {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for Variant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.number, self.name)
    }
}

impl Variants {
    /// How many numbers a field's variants can have in all.
    pub(crate) const MOST: usize = 1 << 12;

    /// Returns the variants of these names, numbered from 0; `None` if there is none or too many, two are equal, or one
    /// is no name.
    #[must_use]
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut seen = Vec::new();
        let names: Vec<&str> = names.into_iter().take(Self::MOST + 1).collect();
        let are_good = names.iter().all(|name| is_name(name) && insert(&mut seen, *name));
        (are_good && (1..=Self::MOST).contains(&names.len())).then(|| {
            let names: Vec<_> = names.into_iter().map(keep).collect();
            let dropped = vec![false; names.len()];
            Self::shared(List { names, dropped })
        })
    }

    fn shared(list: List) -> Self {
        let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
        match lists.binary_search(&&list) {
            Ok(place) => Self(lists[place]),
            Err(place) => {
                let kept: &'static List = Box::leak(Box::new(list));
                lists.insert(place, kept);
                Self(kept)
            }
        }
    }

    /// Finds a variant by its number, also a dropped one.
    #[inline]
    #[must_use]
    pub fn get(self, number: u16) -> Option<Variant> {
        self.0.names.get(usize::from(number)).map(|name| Variant { number, name })
    }

    /// Finds a variant by its name.
    #[must_use]
    pub fn named(self, name: &str) -> Option<Variant> {
        self.iter().find(|variant| variant.name() == name)
    }

    /// True if there is a variant with this number, which wasn't dropped.
    #[inline]
    #[must_use]
    pub fn has(self, number: u16) -> bool {
        self.0.dropped.get(usize::from(number)) == Some(&false)
    }

    /// Returns the variants that weren't dropped, by their numbers.
    pub fn iter(self) -> impl Iterator<Item = Variant> + Clone {
        self.numbered().filter(move |variant| self.has(variant.number))
    }

    /// Returns all variants by their numbers, also the dropped ones.
    pub fn numbered(self) -> impl Iterator<Item = Variant> + Clone {
        (0..).zip(&self.0.names).map(|(number, name)| Variant { number, name })
    }

    /// Returns how many numbers were given.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0.names.len()
    }

    /// Returns the first variant, which is never dropped.
    pub(crate) fn first(self) -> Variant {
        self.get(0).unwrap_or(Variant::new(0, &""))
    }

    /// Returns the variants with another one.
    #[doc(hidden)]
    #[must_use]
    pub fn with(self, name: &str) -> Self {
        let mut list = self.0.clone();
        list.names.push(keep(name));
        list.dropped.push(false);
        Self::shared(list)
    }

    /// Returns the variants, one of them with another name.
    #[doc(hidden)]
    #[must_use]
    pub fn renamed(self, number: u16, name: &str) -> Self {
        let mut list = self.0.clone();
        if let Some(old) = list.names.get_mut(usize::from(number)) {
            *old = keep(name);
        }
        Self::shared(list)
    }

    /// Returns the variants without one of them.
    #[doc(hidden)]
    #[must_use]
    pub fn without(self, number: u16) -> Self {
        let mut list = self.0.clone();
        if let Some(dropped) = list.dropped.get_mut(usize::from(number)) {
            *dropped = true;
        }
        Self::shared(list)
    }
}

/// Inserts an item into others that are in order; false if it is there already. Arrays are a tenth of the code of a
/// `BTreeSet`, which each program would compile.
pub(crate) fn insert<T: Ord>(sorted: &mut Vec<T>, item: T) -> bool {
    let place = sorted.binary_search(&item);
    if let Err(place) = place {
        sorted.insert(place, item);
    }
    place.is_err()
}

/// Keeps a name as long as the process; each one once.
fn keep(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.binary_search(&name) {
        Ok(place) => names[place],
        Err(place) => {
            let kept: &'static str = Box::leak(name.into());
            names.insert(place, kept);
            kept
        }
    }
}

/// True if a text is a name of the schema language, and no word that values have.
pub(crate) fn is_name(name: &str) -> bool {
    names::is_name(name) && name != "null"
}

impl fmt::Display for Variants {
    /// Writes the names of those that weren't dropped, with commas between.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().enumerate().try_for_each(|(place, variant)| {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{variant}")
        })
    }
}

impl fmt::Debug for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
