//! Many rows at once: columns from slices, and as slices. `cargo run --release --example vectors`
#![allow(clippy::print_stdout, reason = "an example prints what it finds")]

annals::schema!("vectors.schema");

use vectors::sample;

const ROWS: u32 = 100_000;

fn main() -> annals::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let db = vectors::Database::open(folder.path().join("vectors.annals"))?;

    let names: Vec<String> = (0..ROWS).map(|row| format!("sample {row}")).collect();
    let levels: Vec<f64> = (0..ROWS).map(f64::from).collect();
    let errors = vec![None; names.len()];
    let first = db.write(|tx| {
        let first = tx.sample().insert_vector(&names, &levels, &errors)?; // a slice for each field
        tx.sample().update_vector_of(sample::ERROR, first, &[0.5, 0.25])?; // the first two rows
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

    db.write(|tx| tx.sample().delete_vector(first, u64::from(ROWS) - 1))?;
    for row in db.read().sample() {
        println!("{:?}", row?);
    }
    db.close()
}
