//! Indexes that a custom function asks for, and that are made after it.

use annals::{Database, ErrorKind, Options};

annals::schema!("tests/it/upgrade/later.schema");
use later::{customer, sale};

#[test]
fn an_index_that_is_made_later_is_an_error_and_an_old_one_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.annals");
    // Its index has the number that the new one has in the program.
    let old = "create_table sale\nadd_field sale customer string\ncreate_index other sale customer\n\
               drop_index other\ncreate_index sale_by_customer sale customer\n";
    let old = annals_schema::parse(old).unwrap().schema;
    let file: Database = Options::new().open_schema(&path, &old).unwrap();
    let table = old.tables()[0].number;
    file.write(|tx| tx.insert(table, &["Ada".into()]).map(drop)).unwrap();
    file.close().unwrap();

    let mut errors = Vec::new();
    let customs = later::Customs {
        find_buyers: &mut |tx| {
            let by_customer = tx.sale().by_customer();
            assert_eq!(by_customer.with_customer("Ada").count(), 1, "an index of the file");
            tx.insert(customer::New { name: "Ada" })?;
            let by_name = tx.customer().by_name();
            errors.extend(by_name.get("Ada").err());
            errors.extend(by_name.require("Ada").err());
            errors.extend(by_name.iter().next().and_then(annals::Result::err));
            errors.extend(by_name.range(.."B").next_back().and_then(annals::Result::err));
            errors.extend(by_name.nth(0).err());
            errors.extend(
                by_name.first_of_each([["Ada".into()]]).next().and_then(annals::Result::err),
            );
            errors.extend(by_name.groups(1).count().err());
            errors.extend(by_name.cursor().next().and_then(annals::Result::err));
            Ok(())
        },
    };
    let db = later::Database::open(&path, customs).unwrap();
    assert_eq!(errors.len(), 8);
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("an upgrade makes new indexes after"), "{error}");
    }
    let now = db.read();
    assert!(now.customer().by_name().get("Ada").unwrap().is_some());
    assert_eq!(now.sale().by_customer().iter().count(), 1);
    drop(now);
    db.write(|tx| Ok(tx.insert(sale::New { customer: "Bob" })?)).unwrap();
}
