//! A schema file that isn't there.
//~ error: can't read the schema
//~ nowhere.schema: No such file or directory
//~ the path is relative to the folder of Cargo.toml
annals::schema!("nowhere.schema");

fn main() {}
