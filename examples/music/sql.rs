//! The same queries in SQL.

use rusqlite::{Connection, Result, Row};

/// The albums and tracks of an artist.
pub(crate) fn tracks_of_artist(db: &Connection, name: &str) -> Result<Vec<(String, String)>> {
    db.prepare_cached(
        "SELECT album.title, track.name
         FROM artist
         JOIN album ON album.artist = artist.id
         JOIN track ON track.album = album.id
         WHERE artist.name = ?
         ORDER BY album.id, track.id",
    )?
    .query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

pub(crate) fn revenue_by_genre(db: &Connection) -> Result<Vec<(String, i64)>> {
    db.prepare_cached(
        "SELECT genre.name, SUM(line.cents * line.quantity)
         FROM invoice_line line
         JOIN track ON track.id = line.track
         JOIN genre ON genre.id = track.genre
         GROUP BY genre.id
         ORDER BY genre.name",
    )?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

pub(crate) fn best_artists(db: &Connection) -> Result<Vec<(String, i64)>> {
    db.prepare_cached(
        "SELECT artist.name, SUM(line.cents * line.quantity) AS revenue
         FROM invoice_line line
         JOIN track ON track.id = line.track
         JOIN album ON album.id = track.album
         JOIN artist ON artist.id = album.artist
         GROUP BY artist.id
         ORDER BY revenue DESC, artist.id
         LIMIT 10",
    )?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// How many tracks there are with a text in their names, and the first 20.
pub(crate) fn search(db: &Connection, text: &str) -> Result<(u64, Vec<String>)> {
    let number = db
        .prepare_cached("SELECT COUNT(*) FROM track WHERE instr(name, ?)")?
        .query_row([text], |row| number_in(row, 0))?;
    let first = db
        .prepare_cached("SELECT name FROM track WHERE instr(name, ?) ORDER BY id LIMIT 20")?
        .query_map([text], |row| row.get(0))?
        .collect::<Result<_>>()?;
    Ok((number, first))
}

/// A page of 20 invoices with their customers, the newest first.
pub(crate) fn page(db: &Connection, number: usize) -> Result<Vec<(u64, String, String)>> {
    db.prepare_cached(
        "SELECT invoice.id, invoice.day, customer.name
         FROM invoice
         JOIN customer ON customer.id = invoice.customer
         ORDER BY invoice.day DESC, invoice.id DESC
         LIMIT 20 OFFSET ?",
    )?
    .query_map([((number - 1) * 20).cast_signed()], |row| {
        Ok((number_in(row, 0)?, row.get(1)?, row.get(2)?))
    })?
    .collect()
}

pub(crate) fn revenue_by_month_and_country(
    db: &Connection,
) -> Result<Vec<((String, String), i64)>> {
    db.prepare_cached(
        "SELECT substr(invoice.day, 1, 7) AS month, customer.country, SUM(invoice.cents)
         FROM invoice
         JOIN customer ON customer.id = invoice.customer
         GROUP BY month, customer.country
         ORDER BY month, customer.country",
    )?
    .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
    .collect()
}

/// Albums with at least so many tracks.
pub(crate) fn long_albums(db: &Connection, least: u64) -> Result<Vec<(String, u64)>> {
    db.prepare_cached(
        "SELECT album.title, COUNT(*) AS tracks
         FROM track
         JOIN album ON album.id = track.album
         GROUP BY track.album
         HAVING tracks >= ?
         ORDER BY track.album",
    )?
    .query_map([least.cast_signed()], |row| Ok((row.get(0)?, number_in(row, 1)?)))?
    .collect()
}

/// Reads a number that is never negative.
fn number_in(row: &Row<'_>, column: usize) -> Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}
