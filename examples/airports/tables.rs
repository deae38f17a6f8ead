//! How each table's columns become typed fields, and are set and compared.

use crate::Anything;
use crate::airports::{self, Transaction};
use crate::source::Fields;

/// A type that a column's text can be read as.
trait Column<'t>: Sized + PartialEq {
    fn read(text: &'t str) -> Result<Self, Anything>;
}

impl<'t> Column<'t> for &'t str {
    fn read(text: &'t str) -> Result<Self, Anything> {
        Ok(text)
    }
}

impl Column<'_> for bool {
    fn read(text: &str) -> Result<Self, Anything> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(format!("{text:?} is neither 0 nor 1").into()),
        }
    }
}

impl Column<'_> for i32 {
    fn read(text: &str) -> Result<Self, Anything> {
        Ok(text.parse()?)
    }
}

impl Column<'_> for f64 {
    fn read(text: &str) -> Result<Self, Anything> {
        Ok(text.parse()?)
    }
}

impl<'t, T: Column<'t>> Column<'t> for Option<T> {
    fn read(text: &'t str) -> Result<Self, Anything> {
        if text.is_empty() { Ok(None) } else { T::read(text).map(Some) }
    }
}

fn column<'t, T: Column<'t>>(fields: &'t dyn Fields, name: &str) -> Result<T, Anything> {
    let text = fields.field(name).ok_or_else(|| format!("no column {name}"))?;
    T::read(text).map_err(|error| format!("column {name}: {error}").into())
}

/// Returns true if a column's text is this value.
fn same<'t, T: Column<'t>>(value: T, fields: &'t dyn Fields, name: &str) -> Result<bool, Anything> {
    Ok(value == column(fields, name)?)
}

/// Writes the functions of one table: how its rows are inserted, set and compared with text.
macro_rules! table {
    ($table:ident, { $($name:literal => $field:ident, $set:ident;)* }) => {
        pub(crate) mod $table {
            use super::*;
            use airports::$table::{Id, New, Row};

            /// Inserts a row at its id.
            pub(crate) fn insert(
                tx: &mut Transaction<'_>,
                id: u64,
                fields: &dyn Fields,
            ) -> Result<(), Anything> {
                let row = New { $($field: column(fields, $name)?),* };
                Ok(tx.insert_at(Id::from_u64(id), row)?)
            }

            /// Sets one field of a row from its text.
            pub(crate) fn set(
                tx: &mut Transaction<'_>,
                id: u64,
                fields: &dyn Fields,
                name: &str,
            ) -> Result<(), Anything> {
                let mut row = tx.edit(Id::from_u64(id))?;
                match name {
                    $($name => {
                        let new = New { $field: column(fields, name)?, ..Default::default() };
                        row.$set(new.$field)?;
                    })*
                    _ => return Err(format!("table {} has no {name}", stringify!($table)).into()),
                }
                Ok(())
            }

            /// Names the first field in which a row differs from its text, if there is one.
            pub(crate) fn difference(
                row: &Row<'_>,
                fields: &dyn Fields,
            ) -> Result<Option<&'static str>, Anything> {
                $(if !same(row.$field(), fields, $name)? {
                    return Ok(Some($name));
                })*
                Ok(None)
            }
        }
    };
}

table!(countries, {
    "code" => code, set_code;
    "name" => name, set_name;
    "continent" => continent, set_continent;
    "wikipedia_link" => wikipedia_link, set_wikipedia_link;
    "keywords" => keywords, set_keywords;
});

table!(regions, {
    "code" => code, set_code;
    "local_code" => local_code, set_local_code;
    "name" => name, set_name;
    "continent" => continent, set_continent;
    "iso_country" => iso_country, set_iso_country;
    "wikipedia_link" => wikipedia_link, set_wikipedia_link;
    "keywords" => keywords, set_keywords;
});

table!(navaids, {
    "filename" => filename, set_filename;
    "ident" => ident, set_ident;
    "name" => name, set_name;
    "type" => r#type, set_type;
    "frequency_khz" => frequency_khz, set_frequency_khz;
    "latitude_deg" => latitude_deg, set_latitude_deg;
    "longitude_deg" => longitude_deg, set_longitude_deg;
    "elevation_ft" => elevation_ft, set_elevation_ft;
    "iso_country" => iso_country, set_iso_country;
    "dme_frequency_khz" => dme_frequency_khz, set_dme_frequency_khz;
    "dme_channel" => dme_channel, set_dme_channel;
    "dme_latitude_deg" => dme_latitude_deg, set_dme_latitude_deg;
    "dme_longitude_deg" => dme_longitude_deg, set_dme_longitude_deg;
    "dme_elevation_ft" => dme_elevation_ft, set_dme_elevation_ft;
    "slaved_variation_deg" => slaved_variation_deg, set_slaved_variation_deg;
    "magnetic_variation_deg" => magnetic_variation_deg, set_magnetic_variation_deg;
    "usageType" => usageType, set_usageType;
    "power" => power, set_power;
    "associated_airport" => associated_airport, set_associated_airport;
});

table!(airport_frequencies, {
    "airport_ref" => airport_ref, set_airport_ref;
    "airport_ident" => airport_ident, set_airport_ident;
    "type" => r#type, set_type;
    "description" => description, set_description;
    "frequency_mhz" => frequency_mhz, set_frequency_mhz;
});

table!(runways, {
    "airport_ref" => airport_ref, set_airport_ref;
    "airport_ident" => airport_ident, set_airport_ident;
    "length_ft" => length_ft, set_length_ft;
    "width_ft" => width_ft, set_width_ft;
    "surface" => surface, set_surface;
    "lighted" => lighted, set_lighted;
    "closed" => closed, set_closed;
    "le_ident" => le_ident, set_le_ident;
    "le_latitude_deg" => le_latitude_deg, set_le_latitude_deg;
    "le_longitude_deg" => le_longitude_deg, set_le_longitude_deg;
    "le_elevation_ft" => le_elevation_ft, set_le_elevation_ft;
    "le_heading_degT" => le_heading_degT, set_le_heading_degT;
    "le_displaced_threshold_ft" => le_displaced_threshold_ft, set_le_displaced_threshold_ft;
    "he_ident" => he_ident, set_he_ident;
    "he_latitude_deg" => he_latitude_deg, set_he_latitude_deg;
    "he_longitude_deg" => he_longitude_deg, set_he_longitude_deg;
    "he_elevation_ft" => he_elevation_ft, set_he_elevation_ft;
    "he_heading_degT" => he_heading_degT, set_he_heading_degT;
    "he_displaced_threshold_ft" => he_displaced_threshold_ft, set_he_displaced_threshold_ft;
});

/// Calls the function of that name for the table of that name.
macro_rules! of_table {
    ($name:expr, $function:ident($($argument:expr),*)) => {
        match $name {
            "countries" => $crate::tables::countries::$function($($argument),*),
            "regions" => $crate::tables::regions::$function($($argument),*),
            "navaids" => $crate::tables::navaids::$function($($argument),*),
            "airport_frequencies" => $crate::tables::airport_frequencies::$function($($argument),*),
            "runways" => $crate::tables::runways::$function($($argument),*),
            other => Err(format!("there is no table {other}").into()),
        }
    };
}
pub(crate) use of_table;
