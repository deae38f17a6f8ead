//! Values that may be left out.

use annals_schema::ValueRef;

/// The parameter for a reference, a blob, or a lookup of a field that may be null: a value, an `Option` of one, or
/// `None`.
///
/// It is the type of such parameters in generated code:
///
/// ```
/// annals::schema!("tutorial.schema");
///
/// # fn main() -> annals::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = tutorial::Database::open(folder.path().join("tutorial.annals"))?;
/// db.write(|tx| {
///     let lille = tx.city().insert("Lille")?;
///     let remi = tx.person().insert("Rémi", "Coulom", lille)?;
///     let home = tx.person().get(remi)?.home(); // an `Option<city::Id>`
///     tx.person().insert("Anne", "Martin", home)?;
///     tx.person().set_home(remi, None)
/// })
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "this field takes a `{T}`, an `Option` of it, or `None`",
    label = "`{Self}` is no value of this field",
    note = "a reference takes the id of a row of the table that it leads to, and of no other"
)]
pub trait Nullable<T> {
    /// Returns the value, if there is one.
    fn or_null(self) -> Option<T>;
}

impl<T> Nullable<T> for T {
    fn or_null(self) -> Option<T> {
        Some(self)
    }
}

impl<T> Nullable<T> for Option<T> {
    fn or_null(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<'v> Nullable<&'v str> for &'v String {
    fn or_null(self) -> Option<&'v str> {
        Some(self)
    }
}

#[diagnostic::do_not_recommend]
impl<'v> Nullable<&'v [u8]> for &'v Vec<u8> {
    fn or_null(self) -> Option<&'v [u8]> {
        Some(self)
    }
}

#[diagnostic::do_not_recommend]
impl<'v, const N: usize> Nullable<&'v [u8]> for &'v [u8; N] {
    fn or_null(self) -> Option<&'v [u8]> {
        Some(self)
    }
}

/// Converts the argument of such a parameter to a value.
pub fn nullable<'v, T: Into<ValueRef<'v>>>(value: impl Nullable<T>) -> ValueRef<'v> {
    value.or_null().into()
}
