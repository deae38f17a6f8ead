//! The shop's rows into either database.

use rusqlite::{Connection, params};

use crate::Result;
use crate::data::Shop;
use crate::music::{self, album, artist, customer, genre, invoice, invoice_line, track};

pub(crate) fn into_annals(shop: &Shop, db: &music::Database) -> annals::Result<()> {
    db.write(|tx| {
        for name in &shop.artists {
            tx.insert(artist::New { name })?;
        }
        for album in &shop.albums {
            let artist = artist::Id::from_u64(album.artist as u64);
            tx.insert(album::New { title: &album.title, artist })?;
        }
        for name in &shop.genres {
            tx.insert(genre::New { name })?;
        }
        for track in &shop.tracks {
            let (name, cents) = (track.name.as_str(), track.cents);
            let album = album::Id::from_u64(track.album as u64);
            let genre = genre::Id::from_u64(track.genre as u64);
            tx.insert(track::New { name, album, genre, cents })?;
        }
        for customer in &shop.customers {
            tx.insert(customer::New { name: &customer.name, country: customer.country })?;
        }
        for invoice in &shop.invoices {
            let (day, cents) = (invoice.day.parse()?, invoice.cents);
            let customer = customer::Id::from_u64(invoice.customer as u64);
            tx.insert(invoice::New { customer, day, cents })?;
        }
        for line in &shop.lines {
            let (cents, quantity) = (line.cents, line.quantity);
            let invoice = invoice::Id::from_u64(line.invoice as u64);
            let track = track::Id::from_u64(line.track as u64);
            tx.insert(invoice_line::New { invoice, track, cents, quantity })?;
        }
        Ok(())
    })
}

pub(crate) fn into_sqlite(shop: &Shop, db: &mut Connection) -> Result<()> {
    db.execute_batch(include_str!("music.sql"))?;
    let tx = db.transaction()?;
    let insert =
        |table: &str, values: &str| tx.prepare(&format!("INSERT INTO {table} VALUES ({values})"));
    let mut artists = insert("artist", "?, ?")?;
    for (id, name) in (0_i64..).zip(&shop.artists) {
        artists.execute(params![id, name])?;
    }
    let mut albums = insert("album", "?, ?, ?")?;
    for (id, album) in (0_i64..).zip(&shop.albums) {
        albums.execute(params![id, album.title, album.artist.cast_signed()])?;
    }
    let mut genres = insert("genre", "?, ?")?;
    for (id, name) in (0_i64..).zip(&shop.genres) {
        genres.execute(params![id, name])?;
    }
    let mut tracks = insert("track", "?, ?, ?, ?, ?")?;
    for (id, track) in (0_i64..).zip(&shop.tracks) {
        tracks.execute(params![
            id,
            track.name,
            track.album.cast_signed(),
            track.genre.cast_signed(),
            track.cents
        ])?;
    }
    let mut customers = insert("customer", "?, ?, ?")?;
    for (id, customer) in (0_i64..).zip(&shop.customers) {
        customers.execute(params![id, customer.name, customer.country])?;
    }
    let mut invoices = insert("invoice", "?, ?, ?, ?")?;
    for (id, invoice) in (0_i64..).zip(&shop.invoices) {
        invoices.execute(params![
            id,
            invoice.customer.cast_signed(),
            invoice.day,
            invoice.cents
        ])?;
    }
    let mut lines = insert("invoice_line", "?, ?, ?, ?, ?")?;
    for (id, line) in (0_i64..).zip(&shop.lines) {
        lines.execute(params![
            id,
            line.invoice.cast_signed(),
            line.track.cast_signed(),
            line.cents,
            line.quantity
        ])?;
    }
    drop((artists, albums, genres, tracks, customers, invoices, lines));
    tx.commit()?;
    Ok(db.execute_batch("ANALYZE")?)
}
