//! An id of another table where a row is looked for.
//~ error[E0277]: this takes `annals::typed::Id<city::Kind>`, or an `Option` of it, and not `annals::typed::Id<person::Kind>`
annals::schema!("tutorial.schema");

fn home(now: &tutorial::Snapshot, person: tutorial::person::Id) -> annals::Result<String> {
    Ok(now.city().require(person)?.name().to_owned())
}

fn main() {}
