//! What the models know of collations: ICU's own comparison.

use std::cmp::Ordering;

use annals::model::Collated;
use annals::{FieldNumber, Value, collation_testing};
use icu_collator::Collator;
use icu_collator::options::{CollatorOptions, Strength};
use icu_locale_core::Locale;

use crate::store_model::Random;

/// Compares values in the order of their type; strings in that of a locale, if there is one, as ICU compares them.
pub(crate) fn value_cmp(locale: Option<&str>, a: &Value, b: &Value) -> Ordering {
    let (Some(locale), Value::String(a), Value::String(b)) = (locale, a, b) else {
        return a.as_ref().total_cmp(&b.as_ref());
    };
    let mut options = CollatorOptions::default();
    options.strength = match locale.rsplit_once("-ks-level") {
        Some((_, "1")) => Some(Strength::Primary),
        Some((_, "2")) => Some(Strength::Secondary),
        _ => None,
    };
    let locale = Locale::try_from_str(locale).unwrap();
    Collator::try_new(locale.into(), options).unwrap().compare(a, b)
}

/// Draws collations for some of the strings among fields.
pub(crate) fn collations(
    random: &mut Random,
    fields: &[FieldNumber],
    is_string: impl Fn(FieldNumber) -> bool,
) -> Vec<Collated> {
    let strings = fields.iter().copied().filter(|&field| is_string(field));
    let strings: Vec<_> = strings.collect();
    let collate = |field| {
        let locale = *random.pick(&["und-u-ks-level1", "und-u-ks-level2", "fr-CA", "de"]);
        let version = collation_testing::version(locale);
        random.chance(50).then_some(Collated { field, locale: locale.to_owned(), version })
    };
    strings.into_iter().filter_map(collate).collect()
}
