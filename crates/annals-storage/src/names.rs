//! Names of files that aren't UTF-8, which a directory's users know by other ones.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// How the names that a directory is asked for become those of the file system.
///
/// All files of a journal have names that begin with the journal's own. If that isn't UTF-8, it is a substitute text.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Option<Arc<Alias>>);

#[derive(Debug)]
struct Alias {
    shown: String,
    real: OsString,
}

impl Names {
    /// Returns the substitute name for `real`, and the translation of it and of all names that begin with it.
    pub(super) fn of(real: &OsStr) -> (Self, String) {
        match real.to_str() {
            Some(name) => (Self::default(), name.to_owned()),
            None => {
                let shown = real.to_string_lossy().into_owned();
                let alias = Alias { shown: shown.clone(), real: real.to_owned() };
                (Self(Some(Arc::new(alias))), shown)
            }
        }
    }

    /// Returns the name in the file system.
    pub(super) fn real(&self, name: &str) -> OsString {
        let rest =
            self.0.as_ref().and_then(|alias| Some((alias, name.strip_prefix(&alias.shown)?)));
        match rest {
            Some((alias, rest)) => {
                let mut real = alias.real.clone();
                real.push(rest);
                real
            }
            None => name.into(),
        }
    }

    /// Returns the substitute for a name of the file system; `None` if there is none.
    pub(super) fn shown(&self, real: &OsStr) -> Option<String> {
        let Some(alias) = &self.0 else { return real.to_str().map(str::to_owned) };
        let rest = real.as_encoded_bytes().strip_prefix(alias.real.as_encoded_bytes());
        match rest.map(std::str::from_utf8) {
            Some(rest) => Some(format!("{}{}", alias.shown, rest.ok()?)),
            // A name that looks like the alias can't be requested.
            None => real.to_str().filter(|name| !name.starts_with(&alias.shown)).map(str::to_owned),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_text_stands_for_a_name_that_is_none() {
        let real = OsStr::from_bytes(b"caf\xe9.annals");
        let (names, shown) = Names::of(real);
        assert_eq!(shown, "caf\u{fffd}.annals");
        let image = OsStr::from_bytes(b"caf\xe9.annals-image");
        assert_eq!(names.real(&shown), real);
        assert_eq!(names.real(&format!("{shown}-image")), image);
        assert_eq!(names.shown(image).unwrap(), format!("{shown}-image"));
        assert_eq!((names.real("b"), names.shown(OsStr::new("b"))), ("b".into(), Some("b".into())));
        assert_eq!(names.shown(OsStr::new(&shown)), None);
        assert_eq!(names.shown(OsStr::from_bytes(b"\xff")), None);
        let (plain, name) = Names::of(OsStr::new("a"));
        assert_eq!((name.as_str(), plain.real("a"), plain.shown(real)), ("a", "a".into(), None));
    }
}
