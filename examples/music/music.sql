-- All of the data fits in the cache.
PRAGMA cache_size = -65536;
PRAGMA journal_mode = WAL;
CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE album (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    artist INTEGER NOT NULL REFERENCES artist
);
CREATE INDEX album_by_artist ON album (artist);
CREATE TABLE genre (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE track (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    album INTEGER NOT NULL REFERENCES album,
    genre INTEGER NOT NULL REFERENCES genre,
    cents INTEGER NOT NULL
);
CREATE INDEX track_by_album ON track (album);
CREATE INDEX track_by_genre ON track (genre);
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE invoice (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES customer,
    day TEXT NOT NULL,
    cents INTEGER NOT NULL
);
CREATE INDEX invoice_by_customer ON invoice (customer);
CREATE INDEX invoice_by_day ON invoice (day);
CREATE TABLE invoice_line (
    id INTEGER PRIMARY KEY,
    invoice INTEGER NOT NULL REFERENCES invoice ON DELETE CASCADE,
    track INTEGER NOT NULL REFERENCES track,
    cents INTEGER NOT NULL,
    quantity INTEGER NOT NULL
);
CREATE INDEX invoice_line_by_invoice ON invoice_line (invoice);
CREATE INDEX invoice_line_by_track ON invoice_line (track);
