//! Sort keys of ICU.
//!
//! ICU promises no stable sort keys: they may change with the data and with its code. So the version of a collation is
//! the release of the data, and a hash of the sort keys of some thousand strings.

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::Locale;
use xxhash_rust::xxh3::Xxh3;

/// The order of a locale.
pub(crate) struct Sorter {
    collator: CollatorBorrowed<'static>,
    version: String,
}

annals_storage::debug::brief!(Sorter, "Sorter", "version": |it| it.version);

impl Sorter {
    /// Makes the sorter of a locale in the canonical form; `None` if ICU doesn't know it.
    pub(crate) fn new(locale: &str) -> Option<Self> {
        let parsed = Locale::try_from_str(locale).ok()?;
        let mut options = CollatorOptions::default();
        options.strength = strength(locale);
        let collator = Collator::try_new(parsed.into(), options).ok()?;
        let mut sorter = Self { collator, version: String::new() };
        sorter.version = format!("cldr-{}-{:016x}", icu_collator_data::cldr_tag!(), sorter.hash());
        Some(sorter)
    }

    /// Returns the version of the sort keys.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Appends the sort key of a string.
    pub(crate) fn put(&self, text: &str, out: &mut Vec<u8>) {
        let Ok(()) = self.collator.write_sort_key_to(text, out);
    }

    /// Hashes the sort keys of single characters, of pairs of letters, which some languages contract, and of a few
    /// longer strings.
    fn hash(&self) -> u64 {
        let (mut hasher, mut key) = (Xxh3::new(), Vec::new());
        let mut add = |text: &str| {
            key.clear();
            self.put(text, &mut key);
            key.extend([0, 0]);
            hasher.update(&key);
        };
        // Letters of Latin, Greek and Cyrillic, then samples of all scripts.
        let characters = (0..0x530).chain((0x530..0x1_0000).step_by(23));
        for character in
            characters.chain((0x1_0000..0x3_2000).step_by(211)).filter_map(char::from_u32)
        {
            add(character.encode_utf8(&mut [0; 4]));
        }
        for first in 'a'..='z' {
            for second in 'a'..='z' {
                add(&String::from_iter([first, second]));
            }
        }
        let long = "Ångström, 1 234 co\u{302}te\u{301} Straße ".repeat(40);
        for text in
            ["", "10 9 a-b A_b", "dzs Dzs DZS ccs", "가나다 한글", "かガｶ゛ー", "漢字 汉字", &long]
        {
            add(text);
        }
        hasher.digest()
    }
}

fn strength(locale: &str) -> Option<Strength> {
    let (_, options) = locale.split_once("-ks-")?;
    match options {
        "level1" => Some(Strength::Primary),
        "level2" => Some(Strength::Secondary),
        "level3" => Some(Strength::Tertiary),
        "level4" => Some(Strength::Quaternary),
        "identic" => Some(Strength::Identical),
        _ => None,
    }
}
