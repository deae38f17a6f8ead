//! The memory of the machine that this process may use.

/// The most memory that pages take unless the program says otherwise, in bytes.
const MOST_FOR_PAGES: u64 = 1 << 30;

/// Returns how much memory the pages of an image may take unless the program says otherwise: 1 GiB, or a quarter of
/// the machine's memory if that is less.
pub fn memory_for_pages() -> u64 {
    part_for_pages(memory())
}

const fn part_for_pages(memory: u64) -> u64 {
    let quarter = memory / 4;
    if quarter < MOST_FOR_PAGES { quarter } else { MOST_FOR_PAGES }
}

/// Returns the memory of the machine in bytes, or this process's limit in a control group; 1 GiB if unknown.
fn memory() -> u64 {
    const UNKNOWN: u64 = 1 << 30;
    [of_machine(), of_group()].into_iter().flatten().min().unwrap_or(UNKNOWN)
}

#[cfg(target_os = "linux")]
fn of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(not(target_os = "linux"))]
fn of_machine() -> Option<u64> {
    None
}

/// Returns the least limit of the control groups that the process is in.
#[cfg(target_os = "linux")]
fn of_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let limit = |group: &std::path::Path| {
        let text = std::fs::read_to_string(group.join("memory.max")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let root = std::path::Path::new("/sys/fs/cgroup");
    let own = root.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|group| group.starts_with(root)).filter_map(limit).min()
}

#[cfg(not(target_os = "linux"))]
fn of_group() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::{memory, memory_for_pages, part_for_pages};

    #[test]
    fn a_machine_has_some_memory() {
        assert!(memory() > 1 << 20);
        assert_eq!(memory_for_pages(), part_for_pages(memory()));
    }

    #[test]
    fn pages_take_a_quarter_of_the_memory_and_at_most_a_gibibyte() {
        let mib = 1 << 20;
        for (memory, pages) in [(0, 0), (64, 16), (512, 128), (4092, 1023), (4096, 1024)] {
            assert_eq!(part_for_pages(memory * mib), pages * mib, "{memory} MiB");
        }
        for memory in [(4 << 30) + 4, 16 << 30, 1 << 50, u64::MAX] {
            assert_eq!(part_for_pages(memory), 1 << 30, "{memory} bytes");
        }
    }
}
