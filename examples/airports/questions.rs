//! Questions that indexes answer.

use crate::Anything;
use crate::airports::Snapshot;

/// Asks, and prints the answers.
pub(crate) fn ask(now: &Snapshot) -> Result<(), Anything> {
    runways_of(now, 2434, "London Heathrow")?;
    navaids_named(now, "PAR")?;
    regions_of(now, "FR")?;
    frequencies_in(now, 121.5, 121.55)
}

/// The runways of one airport, by the number that the data gives it.
fn runways_of(now: &Snapshot, airport: i32, name: &str) -> Result<(), Anything> {
    println!("\nRunways of {name}:");
    for runway in now.runways().by_airport().with_airport_ref(airport) {
        let runway = runway?;
        let length = runway.length_ft().map_or("?".to_owned(), |feet| feet.to_string());
        println!(
            "  {}/{}: {length} ft, {}",
            runway.le_ident(),
            runway.he_ident(),
            runway.surface()
        );
    }
    Ok(())
}

fn navaids_named(now: &Snapshot, ident: &str) -> Result<(), Anything> {
    println!("\nNavaids called {ident}:");
    for navaid in now.navaids().by_ident().with_ident(ident) {
        let navaid = navaid?;
        let khz = navaid.frequency_khz();
        println!(
            "  {} ({}), {} kHz, in {}",
            navaid.name(),
            navaid.r#type(),
            khz,
            navaid.iso_country()
        );
    }
    Ok(())
}

fn regions_of(now: &Snapshot, country: &str) -> Result<(), Anything> {
    let name = now.countries().by_code().require(country)?.name().to_owned();
    let regions = now.regions().by_country().with_iso_country(country);
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let first: Vec<_> = regions.iter().take(4).map(|region| region.name().to_owned()).collect();
    println!("\n{name} has {} regions: {}, ..", regions.len(), first.join(", "));
    Ok(())
}

fn frequencies_in(now: &Snapshot, from: f64, to: f64) -> Result<(), Anything> {
    let by_mhz = now.airport_frequencies().by_mhz();
    let count = by_mhz.range(from..=to).count();
    println!("\n{count} frequencies from {from} to {to} MHz; the highest three:");
    for row in by_mhz.range(from..=to).rev().take(3) {
        let row = row?;
        println!("  {} MHz at {}: {}", row.frequency_mhz(), row.airport_ident(), row.description());
    }
    Ok(())
}
