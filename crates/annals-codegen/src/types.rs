//! How the fields of a schema look in Rust.

use super::names::{EnumNames, Names, OwnNames};
use annals_schema::{Field, Type, Uuid, Value, write_default};

/// A field as generated code sees it.
pub(super) struct Column<'a> {
    /// The field.
    pub(super) field: &'a Field,
    /// Its name in Rust.
    pub(super) name: &'a str,
    /// The type in Rust of its stored value when it isn't null; borrowed types have no lifetime.
    plain: String,
    /// The type of the program that it has instead.
    pub(super) own: Option<&'a OwnNames>,
    /// The names of its variants in Rust, by their numbers, if it is an enum.
    variants: &'a [String],
}

impl<'a> Column<'a> {
    pub(super) fn new(
        names: &Names,
        field: &'a Field,
        name: &'a str,
        of_enum: Option<&'a EnumNames>,
    ) -> Self {
        let plain = match field.ty {
            Type::Enum(_) => of_enum.map_or_else(String::new, |names| names.ty.clone()),
            Type::String | Type::Json => "&str".to_owned(),
            Type::Bytes => "&[u8]".to_owned(),
            Type::FixedBytes(len) => format!("&[u8; {len}]"),
            Type::Decimal(scale) => format!("::annals::Decimal<{scale}>"),
            Type::Timestamp => "::annals::Timestamp".to_owned(),
            Type::Date => "::annals::Date".to_owned(),
            Type::Uuid => "::annals::Uuid".to_owned(),
            Type::Blob => "::annals::Blob".to_owned(),
            Type::Reference(target, _) => match names.table(target) {
                Some(table) => format!("super::{}::Id", table.name),
                // The table was dropped: only numbers are left.
                None => "::annals::RowId".to_owned(),
            },
            // `int8` is `i8`, `uint8` is `u8`, `float32` is `f32`, and `bool` itself.
            own => own.name().replace("int", "i").replace("ui", "u").replace("float", "f"),
        };
        let variants = of_enum.map_or(&[][..], |names| &names.variants);
        Self { field, name, plain, own: None, variants }
    }

    /// Sets the type of the program.
    pub(super) const fn with_own(mut self, own: Option<&'a OwnNames>) -> Self {
        self.own = own;
        self
    }

    /// The type that stands for the stored value in `annals::FieldValue`.
    pub(super) fn stored(&self) -> &str {
        self.plain.trim_start_matches('&')
    }

    /// The constant that names the field to the runtime.
    pub(super) fn number(&self) -> String {
        format!("::annals::FieldNumber({})", self.field.number.0)
    }

    /// Describes the type of the field in the schema's words.
    pub(super) fn description(&self) -> String {
        let name = &self.field.name;
        if let Type::Reference(_, on_delete) = self.field.ty {
            let words = on_delete.words(!self.field.nullable).trim_start();
            let rule = if words.is_empty() { String::new() } else { format!(" ({words})") };
            return match self.plain.strip_prefix("super::") {
                Some(id) => {
                    let target = id.trim_end_matches("::Id");
                    format!("The reference `{name}` to a row of `{target}`{rule}.")
                }
                None => format!("The reference `{name}` to a row of a table that was dropped."),
            };
        }
        let is_optional = self.field.nullable && self.field.ty != Type::Blob;
        let null = if is_optional { ", may be null" } else { "" };
        // A default that isn't plain would need Markdown's escapes.
        let default = self.field.default.as_ref().map(|default| {
            let mut text = String::new();
            // Writing to a string can't fail.
            let _infallible = write_default(&mut text, default);
            text
        });
        let default = default
            .filter(|text| text.len() <= 60 && text.is_ascii() && !text.contains('`'))
            .map_or_else(String::new, |text| format!(", default `{text}`"));
        format!("The field `{name}`: {}{null}{default}.", self.field.ty)
    }

    /// True if a new row must say which row it refers to.
    pub(super) fn demands_a_row(&self) -> bool {
        let Field { ty, nullable, default, .. } = self.field;
        matches!(ty, Type::Reference(..)) && !nullable && default.is_none()
    }

    pub(super) fn is_borrowed(&self) -> bool {
        self.own.is_none() && self.field.ty.is_variable()
    }

    fn or_null(&self, plain: &str) -> String {
        if self.field.nullable { format!("Option<{plain}>") } else { plain.to_owned() }
    }

    /// The type of a value that isn't null; `lifetime` is empty, or like `'a `.
    pub(super) fn plain(&self, lifetime: &str) -> String {
        match self.own {
            Some(own) => own.path.clone(),
            None => self.plain_stored(lifetime),
        }
    }

    fn plain_stored(&self, lifetime: &str) -> String {
        self.plain.replacen('&', &format!("&{lifetime}"), 1)
    }

    /// The type of a value.
    pub(super) fn value(&self, lifetime: &str) -> String {
        self.or_null(&self.plain(lifetime))
    }

    /// The type of a stored value.
    pub(super) fn value_stored(&self, lifetime: &str) -> String {
        self.or_null(&self.plain_stored(lifetime))
    }

    /// The type of a value alone.
    pub(super) fn owned(&self) -> String {
        match self.own {
            Some(own) => self.or_null(&own.path),
            None => self.owned_stored(),
        }
    }

    /// The type of a stored value alone.
    pub(super) fn owned_stored(&self) -> String {
        let plain = match self.plain.as_str() {
            "&str" => "::std::string::String",
            "&[u8]" => "::std::vec::Vec<u8>",
            plain => plain.trim_start_matches('&'),
        };
        self.or_null(plain)
    }

    /// The expression that reads the value of a row.
    pub(super) fn read(&self) -> String {
        let read = format!("self.0.read({})", self.number());
        self.converted("read", read)
    }

    /// The expression that takes the value of a change.
    pub(super) fn taken(&self) -> String {
        match self.own {
            Some(own) => format!("{}::take(row, {})", own.alias, self.number()),
            None => format!("row.take({})", self.number()),
        }
    }

    /// Calls a function of the alias, if there is one.
    fn converted(&self, function: &str, value: String) -> String {
        match self.own {
            Some(own) => format!("{}::{function}({value})", own.alias),
            None => value,
        }
    }

    /// The expression that makes a `ValueRef` of a field of a new row.
    pub(super) fn value_of_new(&self) -> String {
        match self.own {
            Some(own) => format!("{}::value(&self.{})", own.alias, self.name),
            None => format!("self.{}.into()", self.name),
        }
    }

    /// The expression that makes a `ValueRef` of a field of the values alone.
    pub(super) fn value_of_owned(&self) -> String {
        match self.own {
            Some(_) => self.value_of_new(),
            None => format!("::annals::ValueRef::from({})", self.borrowed()),
        }
    }

    /// The expression that borrows a value of `owned`, a struct of such values.
    fn borrowed(&self) -> String {
        let (reference, borrow) = match (self.field.ty, self.field.nullable) {
            (Type::FixedBytes(_), true) => ("", ".as_ref()"),
            (Type::FixedBytes(_), false) => ("&", ""),
            (ty, true) if ty.is_variable() => ("", ".as_deref()"),
            (ty, false) if ty.is_text() => ("", ".as_str()"),
            (Type::Bytes, false) => ("", ".as_slice()"),
            _ => ("", ""),
        };
        format!("{reference}self.{}{borrow}", self.name)
    }

    /// The default of such a value.
    pub(super) fn owned_default(&self) -> String {
        let default = self.default();
        match (self.field.ty, self.field.nullable) {
            _ if !self.is_borrowed() || default == "None" => default,
            (Type::FixedBytes(_), true) => format!("{default}.copied()"),
            (Type::FixedBytes(_), false) => format!("*{default}"),
            (_, true) => format!("{default}.map(Into::into)"),
            (_, false) => format!("{default}.into()"),
        }
    }

    /// The parameter that takes a value. Where null is allowed, a plain value or an `Option` of it; see
    /// [`names_lifetime`](Self::names_lifetime).
    pub(super) fn parameter(&self) -> String {
        if let Some(own) = self.own {
            let given = if self.field.nullable { "GivenOrNull" } else { "Given" };
            return format!("{}: impl ::annals::typed::{given}<{}>", self.name, own.path);
        }
        if self.field.nullable {
            format!("{}: impl ::annals::typed::OrNull<{}>", self.name, self.plain("'k "))
        } else {
            format!("{}: {}", self.name, self.plain)
        }
    }

    /// True if that parameter names the lifetime `'k`: inside `impl` it can't be left out.
    pub(super) fn names_lifetime(&self) -> bool {
        self.field.nullable && self.is_borrowed()
    }

    /// The expression that makes a `ValueRef` of that parameter.
    pub(super) fn argument(&self) -> String {
        if let Some(own) = self.own {
            format!("{}::given(&{})", own.alias, self.name)
        } else if self.field.nullable {
            format!("::annals::typed::nullable::<{}>({})", self.plain, self.name)
        } else {
            format!("{}.into()", self.name)
        }
    }

    /// The type of the values of the whole column, as a constant has it.
    pub(super) fn column_type(&self) -> String {
        self.value_stored("'static ")
    }

    /// The default as a Rust expression.
    pub(super) fn default(&self) -> String {
        match self.default_stored() {
            none if none == "None" => none,
            stored => self.converted("read", stored),
        }
    }

    fn default_stored(&self) -> String {
        let value = self.field.default_value();
        let plain = match &value {
            Value::Null => return "None".to_owned(),
            Value::Float32(v) => float(f64::from(*v), &format!("{v:?}"), "f32"),
            Value::Float64(v) => float(*v, &format!("{v:?}"), "f64"),
            Value::String(v) => format!("{v:?}"),
            Value::Bytes(v) => format!("b\"{}\"", v.escape_ascii()),
            Value::Timestamp(v) => format!("::annals::Timestamp({v})"),
            Value::Date(v) => format!("::annals::Date({})", v.0),
            Value::Uuid(Uuid::NEW_V7) => "::annals::Uuid::NEW_V7".to_owned(),
            Value::Uuid(v) => {
                format!("::annals::Uuid::from_u128(0x{})", v.to_string().replace('-', "_"))
            }
            Value::Decimal(v) => format!("::annals::Decimal::from_units({})", v.units()),
            Value::Enum(v) => {
                format!(
                    "{}::{}",
                    self.plain,
                    self.variants.get(usize::from(v.number())).map_or("?", String::as_str)
                )
            }
            Value::Blob(v) => format!("::annals::Blob({})", v.0),
            Value::Reference(v) if self.plain == "::annals::RowId" => {
                format!("::annals::RowId({})", v.0)
            }
            Value::Reference(v) => format!("{}::from_u64({})", self.plain, v.0),
            number => number.to_string(),
        };
        if self.field.nullable { format!("Some({plain})") } else { plain }
    }
}

fn float(value: f64, text: &str, ty: &str) -> String {
    if value.is_nan() {
        format!("{ty}::NAN")
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "NEG_" } else { "" };
        format!("{ty}::{sign}INFINITY")
    } else {
        text.to_owned()
    }
}
