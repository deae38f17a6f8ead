//! Projects of cargo in a folder, whose builds are timed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::schema;
use crate::engines::Failure;
use crate::processor;

/// Where the library is.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/annals");
/// The file with the versions of other crates.
const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");

/// The options of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// As `cargo build` does.
    Debug,
    /// As `cargo build --release` does, without symbols.
    Release,
}

impl Profile {
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &[],
            Self::Release => &["--release"],
        }
    }

    const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// The result of a build.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// In seconds.
    pub(super) wall: f64,
    /// In seconds of all processes together; not known everywhere.
    pub(super) processor: Option<f64>,
}

/// A workspace of three packages.
pub(super) struct Project {
    folder: PathBuf,
    target: PathBuf,
}

/// A program without a schema.
pub(super) const BARE: &str = "bare";
/// A library with the schema, and a program that opens such a database.
pub(super) const SHARED: &str = "shared";
/// A program with the schema, which uses each table.
pub(super) const USED: &str = "used";

impl Project {
    /// Writes it into an empty folder.
    pub(super) fn new(
        folder: &Path,
        target: &Path,
        (tables, fields): (u32, u32),
    ) -> Result<Self, Failure> {
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(path, text)
        };
        write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"bare\", \"shared\", \"used\"]\n\n\
             [profile.release]\nstrip = true\n",
        )?;
        for name in [BARE, SHARED, USED] {
            write(
                &format!("{name}/Cargo.toml"),
                &format!(
                    "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                     [dependencies]\nannals = {{ path = {LIBRARY:?} }}\n"
                ),
            )?;
        }
        write("large.schema", &schema::text(tables, fields))?;
        write("bare/src/main.rs", schema::BARE)?;
        write("shared/src/lib.rs", schema::LIBRARY)?;
        let opens = "database = annals::Options::new().open(path)?";
        let typed = "database = shared::large::Database::open(path)?";
        write("shared/src/main.rs", &schema::BARE.replace(opens, typed))?;
        write("used/src/main.rs", &schema::program(tables))?;
        std::fs::copy(LOCK, folder.join("Cargo.lock"))?;
        Ok(Self { folder: folder.to_owned(), target: target.to_owned() })
    }

    /// Builds everything once, so that common dependencies exist.
    pub(super) fn prepare(&self, profile: Profile) -> Result<(), Failure> {
        self.cargo("build", profile, &["--workspace"])
    }

    /// Builds a package again.
    pub(super) fn build(&self, package: &str, profile: Profile) -> Result<Cost, Failure> {
        self.cargo("clean", profile, &["--package", package])?;
        let before = processor::of_children();
        #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
        let start = Instant::now();
        self.cargo("build", profile, &["--package", package])?;
        let wall = start.elapsed().as_secs_f64();
        let processor = processor::of_children().zip(before).map(|(after, before)| after - before);
        Ok(Cost { wall, processor })
    }

    /// Runs a package's program with the path of a database that doesn't exist yet; returns its output.
    pub(super) fn run(&self, package: &str, profile: Profile) -> Result<String, Failure> {
        let database = tempfile::tempdir()?;
        let program = self.program(package, profile);
        let output = Command::new(program).arg(database.path().join("large.annals")).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?.trim_end().to_owned()),
            false => Err(format!("{package}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }

    /// Returns the length of a package's program in bytes.
    pub(super) fn len(&self, package: &str, profile: Profile) -> Result<u64, Failure> {
        Ok(std::fs::metadata(self.program(package, profile))?.len())
    }

    fn program(&self, package: &str, profile: Profile) -> PathBuf {
        let name = format!("{package}{}", std::env::consts::EXE_SUFFIX);
        self.target.join(profile.folder()).join(name)
    }

    fn cargo(&self, command: &str, profile: Profile, arguments: &[&str]) -> Result<(), Failure> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([command, "--offline", "--quiet", "--target-dir"])
            .arg(&self.target)
            .args(profile.arguments())
            .args(arguments)
            .current_dir(&self.folder)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CARGO_INCREMENTAL")
            .stdin(Stdio::null())
            .output()?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("cargo {command} {}:\n{said}", arguments.join(" ")).into())
            }
        }
    }
}
