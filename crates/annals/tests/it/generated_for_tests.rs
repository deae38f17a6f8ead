//! The schemas that the tests of the typed API run on, compiled by the macro.

annals::schema!("tutorial.schema");
annals::schema!("tests/it/items.schema");
annals::schema!("tests/it/indexes.schema");
annals::schema!("tests/it/verbs.schema");
annals::schema!("tests/it/collation.schema");
annals::schema!("tests/it/exact.schema");
annals::schema!("tests/it/required.schema");
annals::schema!("tests/it/enums.schema");
annals::schema!("tests/it/uuids.schema");
