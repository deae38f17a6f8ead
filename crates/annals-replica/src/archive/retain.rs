//! Retention: an archive forgets what is before a segment that begins with the state.

use annals::{Error, Result, Retention, Timestamp};

use super::bucket::Bucket;
use super::image::leave_image;
use super::manifest::{Between, LeftOut, Manifest, Range, damaged};
use super::segments::segments;

/// Returns the place of the range with the newest beginning that the rules allow; `None` if all is kept. What any of the
/// rules asks for is kept, and nothing is forgotten without a rule.
fn cut(manifest: &Manifest, rules: &Retention, now: Timestamp) -> Option<usize> {
    if *rules == Retention::default() {
        return None;
    }
    let end = manifest.end()?;
    let allowed = segments(manifest)?.into_iter().skip(1).filter(|segment| {
        let after = manifest.ranges.get(segment.range + 1..).unwrap_or_default();
        let bytes: u64 = after.iter().map(|range| range.bytes).sum();
        let state = manifest.ranges.get(segment.range).map_or(0, |range| range.next.0.txid.0);
        let begun_before = |time: std::time::Duration| {
            let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            // Two clocks may have been wrong: that of who began it, and that of who committed before.
            let begun = segment.start.begun.max(manifest.committed(segment.range).unwrap_or(0));
            begun <= now.0.saturating_sub(micros)
        };
        segment.start.is_base
            && rules.bytes.is_none_or(|least| bytes >= least)
            && rules.transactions.is_none_or(|least| end.txid.0.saturating_sub(state) >= least)
            && rules.time.is_none_or(begun_before)
    });
    allowed.map(|segment| segment.range).next_back()
}

/// Returns the manifest without what the rules don't keep; `None` if they keep all.
pub(super) fn forget(
    bucket: &Bucket,
    mut next: Manifest,
    rules: &Retention,
    now: Timestamp,
) -> Result<Option<Manifest>> {
    if next.building.is_some() {
        return Ok(None);
    }
    let Some(place) = cut(&next, rules, now) else { return Ok(None) };
    let Some(border) = next.ranges.get(place).cloned() else { return Ok(None) };
    let first = beginning(bucket, &next, &border)?;
    let state = first.next.0.txid.0;
    let (by, at_once) = (next.number, false);
    let gone = next.ranges.splice(..=place, [first]);
    let gone: Vec<_> = gone.map(|it| LeftOut { name: it.name, by, at_once }).collect();
    next.left_out.extend(gone);
    if next.image.as_ref().is_some_and(|image| image.txid < state) {
        leave_image(&mut next, false);
    }
    Ok(Some(next))
}

/// Makes the first range of the shorter archive: the state of a segment, after its header.
fn beginning(bucket: &Bucket, next: &Manifest, border: &Range) -> Result<Range> {
    let bytes = bucket.get(&border.name)?.filter(|bytes| border.is(bytes));
    let bytes = bytes.ok_or_else(|| damaged(bucket, border))?;
    let (start, begins) = (border.start(), border.begins.as_ref());
    let (Some(start), Some(begins)) = (start, begins) else { return Err(damaged(bucket, border)) };
    let state = usize::try_from(begins.before).ok().and_then(|before| bytes.get(before..));
    let state = state.ok_or_else(|| Error::corrupt("the range has no state"))?;
    let first = [&start.header[..], state].concat();
    let (generation, next) = (next.generation, border.next.0);
    let first_range = Range::of(Between { generation, after: None, next, is_seal: false }, &first);
    bucket.create_same(&first_range.name, &first.into())?;
    Ok(first_range)
}
