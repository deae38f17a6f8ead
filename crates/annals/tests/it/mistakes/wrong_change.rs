//! A column of another table is asked for in a change.
//~ expected `Column<Kind, _>`, found `Column<Kind, &str>`
annals::schema!("tutorial.schema");

fn is_renamed(change: &tutorial::city::Change) -> bool {
    change.changed(tutorial::person::LAST_NAME)
}

fn main() {}
