//! Steps that tests can leave out, to see that the mistake is found.

/// A step of a recipe, named by the [`Mistake`](crate::mistakes::Mistake) of not doing it right.
///
/// Without the feature `testing` it is the plain expression. With it, a test can make the mistake:
///
/// | step | with the mistake |
/// |---|---|
/// | `step!(CommitNotFlushed, self.flush()?);` | it is left out |
/// | `step!(NonceNotRandom, nonce, else 0)` | the other expression takes its place |
/// | `step!(RootCopiesAtOnce, else write_copy()?);` | a wrong step is added |
#[cfg(feature = "testing")]
#[macro_export]
#[doc(hidden)]
macro_rules! step {
    ($mistake:ident, else $wrong:expr) => {
        if $crate::mistakes::is_made($crate::mistakes::Mistake::$mistake) {
            $wrong;
        }
    };
    ($mistake:ident, $right:expr) => {
        if !$crate::mistakes::is_made($crate::mistakes::Mistake::$mistake) {
            $right;
        }
    };
    ($mistake:ident, $right:expr, else $wrong:expr) => {
        if $crate::mistakes::is_made($crate::mistakes::Mistake::$mistake) { $wrong } else { $right }
    };
}

/// A step of a recipe: the plain expression. With the feature `testing`, tests can make the
/// mistake.
#[cfg(not(feature = "testing"))]
#[macro_export]
#[doc(hidden)]
macro_rules! step {
    // Items that only the wrong step uses are still used.
    ($mistake:ident, else $wrong:expr) => {
        if false {
            $wrong;
        }
    };
    ($mistake:ident, $right:expr $(, else $wrong:expr)?) => {
        $right
    };
}
