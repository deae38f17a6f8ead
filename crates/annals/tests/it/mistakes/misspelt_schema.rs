//! A schema file with a mistake.
//~ misspelt.schema:2:11
//~ there is no table `citi`
//~ did you mean `city`?
annals::schema!("misspelt.schema");

fn main() {}
