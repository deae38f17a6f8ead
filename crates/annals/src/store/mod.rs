//! The store: tables and indexes in memory, made of copy-on-write pages.
