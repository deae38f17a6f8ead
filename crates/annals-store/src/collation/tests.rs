//! Sort keys beside ICU's comparison, the order of some languages, and versions.

use std::cmp::Ordering;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::Locale;

use super::*;
use annals_schema::FieldNumber;

fn key(locale: &str, text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    sorter(locale).unwrap().put(text, &mut key);
    key
}

fn sorted<'t>(locale: &str, mut texts: Vec<&'t str>) -> Vec<&'t str> {
    texts.sort_by_key(|text| key(locale, text));
    texts
}

/// ICU's comparison, with the options set here.
fn collator(locale: &str, strength: Option<Strength>) -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = strength;
    Collator::try_new(Locale::try_from_str(locale).unwrap().into(), options).unwrap()
}

/// Numbers without a library.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn text(state: &mut u64) -> String {
    const PIECES: [&str; 32] = [
        "a",
        "A",
        "b",
        "B",
        "ä",
        "a\u{308}",
        "Ä",
        "e",
        "é",
        "É",
        "ss",
        "ß",
        "ch",
        "Ch",
        "c",
        "ll",
        "ñ",
        "n",
        "å",
        "aa",
        " ",
        "-",
        "1",
        "10",
        "2",
        "\0",
        "か",
        "ガ",
        "한",
        "漢",
        "😀",
        "\u{10ffff}",
    ];
    let len = random(state) % 6;
    let pick = |state: &mut u64| PIECES[usize::try_from(random(state) % 32).unwrap()];
    (0..len).map(|_| pick(state)).collect()
}

#[test]
fn sort_keys_compare_as_icu_does() {
    let state = &mut 1;
    for (locale, strength) in [
        ("und", None),
        ("de", None),
        ("und-u-ks-level1", Some(Strength::Primary)),
        ("und-u-ks-level2", Some(Strength::Secondary)),
        ("de-u-co-phonebk-ks-level2", Some(Strength::Secondary)),
        ("es-u-co-trad-ks-level3", Some(Strength::Tertiary)),
        ("da-u-kf-upper", None),
        ("ja-u-ks-level4", Some(Strength::Quaternary)),
        ("fr-CA-u-kn-ks-identic", Some(Strength::Identical)),
    ] {
        let collator = collator(locale, strength);
        let mut equal = 0;
        for _ in 0..4000 {
            let (a, b) = (text(state), text(state));
            let expected = collator.compare(&a, &b);
            assert_eq!(key(locale, &a).cmp(&key(locale, &b)), expected, "{locale} {a:?} {b:?}");
            equal += usize::from(expected == Ordering::Equal && a != b);
        }
        assert_eq!(equal > 0, !locale.ends_with("identic"), "{locale}");
    }
}

#[test]
fn languages_have_their_order() {
    let names = || vec!["Zorn", "Arg", "Ärgerlich", "Arm", "Assistent", "Aßlar", "Assoziation"];
    let german = ["Ärgerlich", "Arg", "Arm", "Assistent", "Aßlar", "Assoziation", "Zorn"];
    assert_eq!(sorted("de-u-co-phonebk", names())[..1], german[..1]);
    assert_eq!(sorted("de", names())[0], "Arg");
    assert_eq!(sorted("sv", vec!["ö", "z", "ä", "å"]), ["z", "å", "ä", "ö"]);
    assert_eq!(sorted("de", vec!["ö", "z", "ä", "o"]), ["ä", "o", "ö", "z"]);
    assert_eq!(sorted("es-u-co-trad", vec!["cz", "ch", "da"]), ["cz", "ch", "da"]);
    assert_eq!(sorted("es", vec!["cz", "ch", "da"]), ["ch", "cz", "da"]);
    assert_eq!(sorted("cs", vec!["h", "ch", "i", "cz"]), ["cz", "h", "ch", "i"]);
    assert_eq!(sorted("und-u-kn", vec!["a10", "a9", "a1"]), ["a1", "a9", "a10"]);
    assert_eq!(sorted("und", vec!["A", "a", "b"]), ["a", "A", "b"]);
    assert_eq!(sorted("und-u-kf-upper", vec!["a", "A", "b"]), ["A", "a", "b"]);
}

#[test]
fn strengths_ignore_case_and_accents() {
    let same = |locale: &str, a, b| key(locale, a) == key(locale, b);
    assert!(same("und-u-ks-level2", "LÉON", "léon") && !same("und-u-ks-level2", "léon", "leon"));
    assert!(same("und-u-ks-level1", "LÉON", "leon") && !same("und-u-ks-level1", "leon", "neon"));
    assert!(!same("und", "Léon", "léon") && same("und", "le\u{301}on", "léon"));
    assert!(!same("und-u-ks-identic", "דחי", "דחי֭"));
    assert!(same("tr-u-ks-level2", "I", "ı") && !same("und-u-ks-level2", "I", "ı"));
}

#[test]
fn a_version_depends_on_the_order_and_on_nothing_else() {
    let version = |locale: &str| Sorter::new(locale).unwrap().version().to_owned();
    assert!(version("de").starts_with(&format!("cldr-{}-", icu_collator_data::cldr_tag!())));
    assert_eq!(version("und"), version("und"));
    for other in ["sv", "und-u-ks-level2", "und-u-kn", "cs"] {
        assert_ne!(version("und"), version(other), "{other}");
    }
}

#[test]
fn what_is_missing_is_named() {
    testing::provide("qta", testing::Provided::Nothing);
    let (field, version) = (FieldNumber(0), String::new());
    let collated = Collated { field, locale: "qta-u-ks-level2".to_owned(), version };
    let error = super::version("by_name", &collated).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let shown = error.to_string();
    assert!(shown.contains("`by_name`") && shown.contains("`collate qta-u-ks-level2`"), "{shown}");
    assert!(shown.contains("feature `collation`"), "{shown}");
}
