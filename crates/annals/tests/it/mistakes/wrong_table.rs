//! An id of another table where a row is looked for.
//~ expected `city::Kind`, found `person::Kind`
annals::schema!("tutorial.schema");

fn home(now: &tutorial::Snapshot, person: tutorial::person::Id) -> annals::Result<String> {
    Ok(now.city().require(person)?.name().to_owned())
}

fn main() {}
