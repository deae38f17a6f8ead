//! Packages outside the workspace, which depend on the library as those of users do.
//!
//! They are built without the network. They share a target folder, so that what they depend on is built once.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package in the target folder of the tests.
pub(crate) struct Package {
    pub(crate) folder: PathBuf,
}

impl Package {
    /// Writes the manifest of a package; `targets` is put at its end.
    pub(crate) fn new(name: &str, targets: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let library = env!("CARGO_MANIFEST_DIR");
        let manifest = format!(
            "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [workspace]\n[dependencies]\nannals = {{ path = {library:?} }}\n{targets}"
        );
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        let lock = Path::new(library).join("../../Cargo.lock");
        fs::copy(lock, folder.join("Cargo.lock")).unwrap();
        Self { folder }
    }

    /// Writes a file of the package.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns a command that runs a program in the folder of the package.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", target);
        // Nobody steps through them.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
        command
    }

    /// Returns a command that runs Cargo in the folder of the package.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        let mut cargo = self.command(env!("CARGO"));
        cargo.args([command, "--offline"]);
        cargo
    }
}
