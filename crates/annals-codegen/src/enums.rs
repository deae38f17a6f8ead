//! The enums of a table's fields.

use super::names::EnumNames;
use super::types::Column;
use annals_schema::{Type, Variants};

/// Writes the enum of a field, if it is one.
pub(super) fn of(column: &Column<'_>, names: &EnumNames) -> Option<String> {
    let Type::Enum(variants) = column.field.ty else { return None };
    let (ty, field) = (&names.ty, &column.field.name);
    let all = || variants.numbered().zip(&names.variants);
    let declared: String = all()
        .map(|(variant, name)| {
            let number = variant.number();
            let first = if number == 0 { "#[default]\n    " } else { "" };
            format!("    /// {}\n    {first}{name} = {number},\n", describe(variants, number))
        })
        .collect();
    let texts: Vec<_> = variants.numbered().map(|variant| format!("\"{variant}\"")).collect();
    let found: String = all()
        .map(|(variant, name)| format!("            {} => Some(Self::{name}),\n", variant.number()))
        .collect();
    Some(format!(
        "\
/// The variants of the field `{field}`, ordered by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum {ty} {{
{declared}}}

impl ::annals::typed::Enum for {ty} {{
    const NAMES: &'static [&'static str] = &[{}];
    #[inline]
    fn from_number(number: u16) -> Option<Self> {{
        match number {{
{found}            _ => None,
        }}
    }}
    #[inline]
    fn number(self) -> u16 {{
        self as u16
    }}
}}

impl ::annals::typed::CellOf for {ty} {{
    type Plain = ::annals::typed::VariantNumber;
    #[inline]
    fn of(plain: ::annals::typed::VariantNumber) -> Self {{
        ::annals::typed::variant_of(plain)
    }}
}}

impl ::annals::typed::Number for {ty} {{
    fn vector(values: &[Self]) -> ::annals::typed::Vector<'_> {{
        ::annals::typed::variants(values)
    }}
}}

impl From<{ty}> for ::annals::ValueRef<'_> {{
    #[inline]
    fn from(value: {ty}) -> Self {{
        ::annals::typed::variant(value)
    }}
}}

/// Writes the name in the schema.
impl ::std::fmt::Display for {ty} {{
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {{
        f.pad(::annals::typed::Enum::name(*self))
    }}
}}

/// Reads the name in the schema.
impl ::std::str::FromStr for {ty} {{
    type Err = ::annals::typed::EnumError;
    fn from_str(text: &str) -> Result<Self, ::annals::typed::EnumError> {{
        ::annals::typed::parse_variant(text)
    }}
}}

::annals::__serde! {{ enum {ty} }}
",
        texts.join(", ")
    ))
}

fn describe(variants: Variants, number: u16) -> String {
    let name = variants.get(number).map_or("?", annals_schema::Variant::name);
    match variants.has(number) {
        true => format!("The variant `{name}`."),
        false => format!("The dropped variant `{name}`, which only rows of the past have."),
    }
}
