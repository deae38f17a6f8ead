//! Collations: the order of strings in a language, as the tag of a locale.
//!
//! A tag is written as in BCP 47: `de`, `de-AT-u-co-phonebk`, `und-u-ks-level2`. Only what an order can mean is
//! understood, so that a misspelt tag is an error. This crate knows no order: the store has it.

use crate::FieldNumber;

/// The collation of a field of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collated {
    /// The field, of type `string`.
    pub field: FieldNumber,
    /// The tag of the locale, in its canonical form: `und-u-ks-level2`.
    pub locale: String,
    /// The version of the data that the index was sorted with; empty in the schema of a program, which has that of the
    /// library.
    pub version: String,
}

/// The options after `-u-`, in the order of a canonical tag, with their values.
const OPTIONS: [(&str, &[&str]); 4] = [
    (
        "co",
        &[
            "compat", "dict", "emoji", "eor", "phonebk", "phonetic", "pinyin", "stroke", "trad",
            "unihan", "zhuyin",
        ],
    ),
    ("kf", &["lower", "upper"]),
    ("kn", &["", "true"]),
    ("ks", &["level1", "level2", "level3", "level4", "identic"]),
];

/// Returns the canonical form of the tag of a locale: language, script and region, then `-u-` and options of the
/// order.
///
/// ```
/// use annals_schema::canonical_locale;
///
/// assert_eq!(canonical_locale("DE-at-u-ks-level2-co-phonebk").unwrap(), "de-AT-u-co-phonebk-ks-level2");
/// assert!(canonical_locale("german").is_err());
/// ```
///
/// # Errors
/// It is no such tag: the text says what is wrong.
pub fn canonical_locale(tag: &str) -> Result<String, String> {
    let lower = tag.to_ascii_lowercase();
    let mut parts = lower.split('-').peekable();
    let letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let language = parts.next().unwrap_or_default();
    if !matches!(language.len(), 2 | 3) || !letters(language) {
        return Err(format!(
            "`{language}` is no language: write two or three letters, as `de`, or `und` for any"
        ));
    }
    let mut canonical = language.to_owned();
    if let Some(script) = parts.next_if(|part| part.len() == 4 && letters(part)) {
        let (first, rest) = script.split_at(1);
        canonical += &format!("-{}{rest}", first.to_ascii_uppercase());
    }
    let is_number = |part: &str| part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(region) =
        parts.next_if(|part| (part.len() == 2 && letters(part)) || is_number(part))
    {
        canonical += &format!("-{}", region.to_ascii_uppercase());
    }
    match parts.next() {
        None => Ok(canonical),
        Some("u") => Ok(canonical + "-u" + &options(parts)?),
        Some(part) => Err(format!("`{part}` is no script, region or `u` with options")),
    }
}

/// Reads the options of an order, and writes them in the canonical form.
fn options<'t>(
    mut parts: std::iter::Peekable<impl Iterator<Item = &'t str>>,
) -> Result<String, String> {
    let mut found: [Option<&str>; OPTIONS.len()] = [None; OPTIONS.len()];
    let keys = || OPTIONS.map(|(key, _)| format!("`{key}`")).join(", ");
    while let Some(key) = parts.next() {
        let place = OPTIONS.iter().position(|(known, _)| *known == key);
        let known = place.and_then(|place| OPTIONS.get(place).zip(found.get_mut(place)));
        let Some(((_, values), slot)) = known else {
            return Err(format!("`{key}` is no option of an order; those are {}", keys()));
        };
        let value = parts.next_if(|part| part.len() > 2).unwrap_or_default();
        let Some(value) = values.iter().find(|known| **known == value) else {
            let values: Vec<_> = values.iter().filter(|value| !value.is_empty()).collect();
            let list: Vec<_> = values.iter().map(|value| format!("`{key}-{value}`")).collect();
            return Err(format!("`{key}` can't be `{value}`; it is one of {}", list.join(", ")));
        };
        if slot.replace(value).is_some() {
            return Err(format!("the option `{key}` is there twice"));
        }
    }
    let mut written = String::new();
    for ((key, _), value) in OPTIONS.iter().zip(found) {
        match value {
            None => {}
            Some("" | "true") => written += &format!("-{key}"),
            Some(value) => written += &format!("-{key}-{value}"),
        }
    }
    if written.is_empty() {
        Err(format!("`u` has no option; write {}", keys()))
    } else {
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::canonical_locale;

    #[test]
    fn a_canonical_tag_stays_as_it_is() {
        for tag in [
            "de",
            "und",
            "zh-Hant-TW",
            "es-419",
            "de-u-co-phonebk",
            "sv-SE-u-co-trad-kf-upper-kn-ks-level1",
        ] {
            assert_eq!(canonical_locale(tag).as_deref(), Ok(tag));
            assert_eq!(canonical_locale(&tag.to_ascii_uppercase()).as_deref(), Ok(tag));
        }
        assert_eq!(canonical_locale("und-u-ks-level2-kn-true").unwrap(), "und-u-kn-ks-level2");
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for (tag, part) in [
            ("", "``"),
            ("d", "`d`"),
            ("german", "`german`"),
            ("de-1996", "`1996`"),
            ("de-x-own", "`x`"),
            ("de-u", "no option"),
            ("de-u-ks", "can't be ``"),
            ("de-u-ks-level9", "`level9`"),
            ("de-u-ca-gregory", "`ca`"),
            ("de-u-co-search", "`search`"),
            ("de-u-kn-kn", "twice"),
            ("dé", "`dé`"),
            ("de-", "``"),
        ] {
            let error = canonical_locale(tag).unwrap_err();
            assert!(error.contains(part), "{tag}: {error}");
        }
    }
}
