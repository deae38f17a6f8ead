//! Small file systems of their own, for tests that fill them or make them read-only.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A file system that ends with this.
pub(super) struct Mounted {
    folder: TempDir,
}

impl Mounted {
    /// Makes an ext4 in a file, which is mounted through a loop device. None where this isn't allowed.
    pub(super) fn ext4(mebibytes: u64) -> Option<Self> {
        let mounted = Self::prepare();
        let image = mounted.folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        let image = image.to_str().unwrap();
        let made = run("mkfs.ext4", &["-q", "-F", "-m", "0", image]);
        made.and_then(|()| run("mount", &["-o", "loop", image, mounted.place()]))
            .map(|()| mounted)
            .map_err(|why| annals_untested::untested(&why))
            .ok()
    }

    /// Makes a file system in memory. None where this isn't allowed.
    pub(super) fn memory(mebibytes: u64) -> Option<Self> {
        let mounted = Self::prepare();
        let size = format!("size={mebibytes}M");
        run("mount", &["-t", "tmpfs", "-o", &size, "annals-test", mounted.place()])
            .map(|()| mounted)
            .map_err(|why| annals_untested::untested(&why))
            .ok()
    }

    fn prepare() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mounted")).unwrap();
        Self { folder }
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn place(&self) -> &'static str {
        // A few bytes in a test.
        String::leak(self.at().to_str().unwrap().to_owned())
    }

    /// Returns the path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.at().join(name)
    }

    /// Lets nobody write to it any more.
    pub(super) fn make_read_only(&self) {
        run("mount", &["-o", "remount,ro", self.place()]).unwrap();
    }

    /// Fills it to the last byte.
    pub(super) fn fill(&self) -> Filler {
        let path = self.file("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        let block = vec![b'x'; 64 << 10];
        for size in [block.len(), 4096, 1] {
            // A file system may find room at the last moment, once it has to look for it.
            for _ in 0..3 {
                while std::io::Write::write_all(&mut file, &block[..size]).is_ok() {}
                let _ = file.sync_data();
            }
        }
        Filler(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mount(&self.at()) {
            let ended = run("umount", &[self.place()]);
            let _ = ended.or_else(|_| run("umount", &["-l", self.place()]));
        }
    }
}

/// What takes all the space, until it ends.
pub(super) struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        // Some file systems give space back only when they have written down that it is free.
        let _ = run("sync", &["-f", self.0.parent().and_then(Path::to_str).unwrap_or("/")]);
    }
}

fn is_mount(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1).is_some_and(|at| Path::new(at) == path))
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
