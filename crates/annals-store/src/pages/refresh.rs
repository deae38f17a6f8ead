//! Updating an old copy from a newer one, instead of making another.
//!
//! A table is a few dozen reference counts. Few of them change between two commits. But a copy increments all
//! reference counts, and dropping the old copy decrements as many. An update compares pointers instead, and changes
//! the counts only where they differ.
//!
//! Invariant: after `a.refresh(&b)`, `a` equals `b.clone()`.

use std::sync::Arc;

/// A structure that can be made equal to another, at the cost of the differences.
pub(crate) trait Refresh: Clone {
    /// Makes this equal to a clone of the other.
    fn refresh(&mut self, newer: &Self);
}

impl<T: ?Sized> Refresh for Arc<T> {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        if !Self::ptr_eq(self, newer) {
            *self = Self::clone(newer);
        }
    }
}

impl<T: Refresh> Refresh for Option<T> {
    #[inline(always)]
    fn refresh(&mut self, newer: &Self) {
        match (&mut *self, newer) {
            (Some(old), Some(newer)) => old.refresh(newer),
            (None, None) => {}
            _ => *self = newer.clone(),
        }
    }
}

impl<T: Refresh> Refresh for Vec<T> {
    fn refresh(&mut self, newer: &Self) {
        if self.len() == newer.len() {
            self.iter_mut().zip(newer).for_each(|(old, newer)| old.refresh(newer));
        } else {
            self.clone_from(newer);
        }
    }
}

impl<T: Refresh> Refresh for Box<T> {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        T::refresh(self, newer);
    }
}

impl<T: Refresh> Refresh for (usize, T) {
    #[inline]
    fn refresh(&mut self, newer: &Self) {
        self.0 = newer.0;
        self.1.refresh(&newer.1);
    }
}

/// Implements the update of structures field by field. All fields must be named: those after the semicolon are plain,
/// and cloned.
macro_rules! refresh {
    ($type:ty { $($field:ident),*; $($plain:ident),* }) => {
        refresh!(impl [] for $type { $($field),*; $($plain),* });
    };
    (impl [$($generics:tt)*] for $type:ty { $($field:ident),*; $($plain:ident),* }) => {
        impl<$($generics)*> $crate::pages::refresh::Refresh for $type {
            #[inline]
            fn refresh(&mut self, newer: &Self) {
                let Self { $($field,)* $($plain),* } = self;
                $($crate::pages::refresh::Refresh::refresh($field, &newer.$field);)*
                $(Clone::clone_from($plain, &newer.$plain);)*
            }
        }
    };
}
pub(crate) use refresh;
