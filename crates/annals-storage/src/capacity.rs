//! The memory of the machine that this process may use.

/// Returns the memory of the machine in bytes, or this process's limit in a control group; 1 GiB if unknown.
pub fn memory() -> u64 {
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
    #[test]
    fn a_machine_has_some_memory() {
        assert!(super::memory() > 1 << 20);
    }
}
