//! Many rows at once: columns from slices, and as slices. `cargo run --release --example vectors`
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("vectors.schema");

use vectors::sample;

const ROWS: u32 = 100_000;

fn main() -> annals::Result<()> {
    let db = vectors::Database::in_memory()?;

    let names: Vec<String> = (0..ROWS).map(|row| format!("sample {row}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let levels: Vec<f64> = (0..ROWS).map(f64::from).collect();
    let errors = vec![None; names.len()];
    let first = db.write(|tx| {
        let columns = sample::Columns { name: &names, level: &levels, error: &errors };
        let first = tx.insert_vector(columns)?; // a slice for each field
        tx.update_vector(sample::ERROR, first, &[0.5, 0.25])?; // the first two rows
        Ok(first)
    })?; // one event a field and run, not one a row

    let now = db.read();
    println!("{} rows", now.sample().len());
    println!("{:?}", now.sample().vector_of(sample::NAME, first, 3)?);
    println!("{:?}", now.sample().vector_of(sample::ERROR, first, 3)?);

    let mut total = 0.0;
    for levels in now.sample().slices_of(sample::LEVEL, first, ROWS.into())? {
        total += levels?.iter().sum::<f64>(); // straight from the pages
    }
    println!("the levels add up to {total}");

    db.write(|tx| Ok(tx.delete_vector(first, u64::from(ROWS) - 1)?))?;
    for row in db.read().sample() {
        println!("{:?}", row?);
    }
    db.close()
}
