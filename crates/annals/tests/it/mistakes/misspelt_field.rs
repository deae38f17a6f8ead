//! A field that isn't there.
//~ no method named `nam` found for reference
//~ there is a method `name` with a similar name
annals::schema!("tutorial.schema");

fn name<'a>(city: &'a tutorial::city::Row<'_>) -> &'a str {
    city.nam()
}

fn main() {}
