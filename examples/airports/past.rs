//! The past: the state as it was on some days, and one row's history.

use std::time::Instant;

use annals::Timestamp;

use crate::Anything;
use crate::airports::{Database, runways};

/// A runway that was deleted and came back.
const RUNWAY: runways::Id = runways::Id::from_u64(238_408);

/// Prints each of these fields that a transaction changed, with its new value.
macro_rules! print_changed {
    ($at:ident, $change:ident, $after:ident: $($field:ident $column:ident,)*) => {{$(
        if $change.changed(runways::$column) {
            println!("{}: {} = {:?}", $at, stringify!($field), $after.$field);
        }
    )*}};
}

/// Looks at the state as it was at the beginning of each year, and says how long that takes.
pub(crate) fn days(db: &Database) -> std::result::Result<(), Anything> {
    println!("\nRunways, and closed ones among them:");
    for year in 2022..=2026 {
        let day: Timestamp = format!("{year}-01-01T00:00:00Z").parse()?;
        #[allow(clippy::disallowed_methods, reason = "an example measures with the real clock")]
        let start = Instant::now();
        let then = db.at(day)?;
        let mut closed = 0;
        for runway in then.runways().iter() {
            closed += u64::from(runway?.closed());
        }
        let (runways, took) = (then.runways().len(), start.elapsed().as_secs_f64() * 1e3);
        println!("  {day}: {runways}, {closed} (transaction {}, in {took:.1} ms)", then.txid());
    }
    Ok(())
}

/// Prints all that happened to the runway.
pub(crate) fn show(db: &Database) -> std::result::Result<(), Anything> {
    println!("\nThe past of runways {}:", RUNWAY.as_u64());
    for version in db.history_of(RUNWAY)? {
        let version = version?;
        let at = format!("  {} (transaction {})", version.time, version.txid);
        let change = version.change;
        match &change.after {
            None => println!("{at}: deleted"),
            Some(runway) if change.is_insert() => println!("{at}: inserted {runway:?}"),
            Some(runway) => print_changed!(at, change, runway:
                airport_ref AIRPORT_REF, airport_ident AIRPORT_IDENT, length_ft LENGTH_FT, width_ft WIDTH_FT,
                surface SURFACE, lighted LIGHTED, closed CLOSED,
                le_ident LE_IDENT, le_latitude_deg LE_LATITUDE_DEG, le_longitude_deg LE_LONGITUDE_DEG,
                le_elevation_ft LE_ELEVATION_FT, le_heading_degT LE_HEADING_DEGT,
                le_displaced_threshold_ft LE_DISPLACED_THRESHOLD_FT,
                he_ident HE_IDENT, he_latitude_deg HE_LATITUDE_DEG, he_longitude_deg HE_LONGITUDE_DEG,
                he_elevation_ft HE_ELEVATION_FT, he_heading_degT HE_HEADING_DEGT,
                he_displaced_threshold_ft HE_DISPLACED_THRESHOLD_FT,
            ),
        }
    }
    Ok(())
}
