//! The queries in Annals.

use std::cmp::Reverse;

use annals::{Date, Result};

use crate::music::Snapshot;

/// The albums and tracks of an artist.
pub(crate) fn tracks_of_artist(now: &Snapshot, name: &str) -> Result<Vec<(String, String)>> {
    let artist = now.artist().by_name().require(name)?;
    let albums = now.album().by_artist().with_artist(artist.id()).query();
    albums
        .join_many(|album| now.track().by_album().with_album(album.id()))
        .map(|(album, track)| (album.title().to_owned(), track.name().to_owned()))
        .collect()
}

pub(crate) fn revenue_by_genre(now: &Snapshot) -> Result<Vec<(String, i64)>> {
    (now.invoice_line().query())
        .join(|line| now.track().get(line.track()))
        .group_by(|(_, track)| track.genre())
        .sum(|(line, _)| line.cents() * line.quantity())
        .try_map(|(genre, cents)| Ok((now.genre().require(genre)?.name().to_owned(), cents)))
        .sort_by_key(|(name, _)| name.clone())
        .collect()
}

pub(crate) fn best_artists(now: &Snapshot) -> Result<Vec<(String, i64)>> {
    (now.invoice_line().query())
        .join(|line| now.track().get(line.track()))
        .join(|(_, track)| now.album().get(track.album()))
        .group_by(|(_, album)| album.artist())
        .sum(|((line, _), _)| line.cents() * line.quantity())
        .top(10, |&(artist, cents)| (cents, Reverse(artist)))
        .try_map(|(artist, cents)| Ok((now.artist().require(artist)?.name().to_owned(), cents)))
        .collect()
}

/// How many tracks there are with a text in their names, and the first 20.
pub(crate) fn search(now: &Snapshot, text: &str) -> Result<(u64, Vec<String>)> {
    let found = || now.track().query().filter(|track| track.name().contains(text));
    let first = found().take(20).map(|track| track.name().to_owned()).collect()?;
    Ok((found().count()?, first))
}

/// A page of 20 invoices with their customers, the newest first.
pub(crate) fn page(now: &Snapshot, number: usize) -> Result<Vec<(u64, String, String)>> {
    (now.invoice().by_day().query().rev().skip((number - 1) * 20).take(20))
        .join(|invoice| now.customer().get(invoice.customer()))
        .map(|(invoice, customer)| {
            (invoice.id().as_u64(), invoice.day().to_string(), customer.name().to_owned())
        })
        .collect()
}

pub(crate) fn revenue_by_month_and_country(now: &Snapshot) -> Result<Vec<((String, String), i64)>> {
    (now.invoice().query())
        .join(|invoice| now.customer().get(invoice.customer()))
        .group_by(|(invoice, customer)| (month(invoice.day()), customer.country().to_owned()))
        .sum(|(invoice, _)| invoice.cents())
        .sort_by_key(|(group, _)| group.clone())
        .collect()
}

/// Albums with at least so many tracks.
pub(crate) fn long_albums(now: &Snapshot, least: u64) -> Result<Vec<(String, u64)>> {
    (now.track().query())
        .group_by(|track| track.album())
        .count()
        .filter(|&(_, number)| number >= least)
        .sort_by_key(|&(album, _)| album)
        .try_map(|(album, number)| Ok((now.album().require(album)?.title().to_owned(), number)))
        .collect()
}

fn month(day: Date) -> String {
    let mut text = day.to_string();
    text.truncate("2021-01".len());
    text
}
