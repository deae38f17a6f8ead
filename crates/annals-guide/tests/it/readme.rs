//! The Rust blocks of README.md: each compiles, and those that need no more than a database run.

/// What `build.rs` made of the blocks.
#[allow(unused_variables, unused_imports, dead_code, reason = "blocks are shown as they are")]
#[allow(clippy::print_stdout, clippy::unnecessary_wraps, reason = "as above")]
#[allow(clippy::needless_pass_by_value, clippy::never_loop, reason = "as above")]
mod blocks {
    include!(concat!(env!("OUT_DIR"), "/readme.rs"));
}

#[test]
fn what_the_readme_shows_of_an_image_and_of_processes_runs() {
    let folder = tempfile::tempdir().unwrap();
    blocks::processes::run(&folder.path().join("visits.annals"), "Ada", 1).unwrap();
    let path = folder.path().join("tutorial.annals");
    let db = blocks::image::tutorial::Database::open(path).unwrap();
    let lille = blocks::image::tutorial::city::New { name: "Lille" };
    db.write(|tx| Ok(tx.insert(lille)?)).unwrap();
    blocks::image::run(&db).unwrap();
}
