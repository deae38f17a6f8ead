//! Verifying an index: every page, and that zones and entries are in order.

use super::entry::Entry;
use super::file::IndexFile;
use super::read::Lookup;
use super::zone::Zone;
use crate::Result;

/// Reads all of an index; returns how many entries it has. `visit` sees each zone with its number, and each entry.
///
/// # Errors
/// `Corrupt`, with the problem; `Io`; and errors of `visit`.
pub(crate) fn check(
    file: &IndexFile,
    zone: &mut dyn FnMut(u64, &Zone) -> Result<()>,
    visit: &mut dyn FnMut(&Entry) -> Result<()>,
) -> Result<u64> {
    let mut entries = 0;
    for run in &file.head().runs {
        let mut lookup = Lookup::new(file);
        let mut before: Option<Zone> = None;
        for (number, next) in (run.zone..).zip(lookup.zones_in(run)?) {
            let follows = before.is_none_or(|before| match before.segment == next.segment {
                true => before.end == next.start,
                false => before.segment < next.segment,
            });
            if !follows || next.start.position > next.end.position {
                return Err(file.corrupt(format_args!("has zones out of order: {number}")));
            }
            zone(number, &next)?;
            before = Some(next);
        }
        let (mut last, mut found) = (None, 0);
        for leaf in 0..run.leaves {
            for entry in lookup.entries_in(run, leaf)? {
                let is_in = (run.zone..run.end_zone()).contains(&entry.zone) && entry.count > 0;
                if last >= Some(entry) || !is_in {
                    return Err(
                        file.corrupt(format_args!("has entries out of order in page {leaf}"))
                    );
                }
                visit(&entry)?;
                found += 1;
                last = Some(entry);
            }
        }
        if found != run.entries {
            return Err(file.corrupt("has other entries than its head tells"));
        }
        entries += found;
    }
    Ok(entries)
}
