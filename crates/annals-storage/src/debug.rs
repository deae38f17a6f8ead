//! The `{:?}` text of a handle: a line that identifies it. Its contents, rows among them, would otherwise be in the
//! logs of every program that derives `Debug` for its own state.

/// Implements `Debug` for a handle: its name, and some values that say which one it is.
#[doc(hidden)]
#[macro_export]
macro_rules! brief {
    ($type:ty, $name:literal $(, $field:literal: |$it:ident| $value:expr)*) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let mut shown = f.debug_struct($name);
                $({
                    let $it = self;
                    shown.field($field, &$value);
                })*
                shown.finish_non_exhaustive()
            }
        }
    };
}

pub use crate::brief;
