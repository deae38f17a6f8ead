//! Comparing an index with the sorted rows of the model.

use std::cmp::Ordering;
use std::ops::Bound;

use annals::store::IndexView;
use annals::{Row, Value};

use super::draw;
use super::look::has_prefix;
use super::model::{Field, Index, Model};
use crate::store_model::{Random, refs};

type Sorted = [(Vec<Value>, u64)];

fn ids<'a>(rows: impl Iterator<Item = annals::Result<Row<'a>>>) -> Vec<u64> {
    rows.map(|row| row.unwrap().id().0).collect()
}

/// Compares keys, or their first fields, in the order of an index.
fn in_order(index: &Index, a: &[Value], b: &[Value]) -> Ordering {
    let fields = a.iter().zip(b).enumerate().map(|(at, (a, b))| {
        let order = index.value_cmp(at, a, b);
        if index.descending.contains(&index.fields[at]) { order.reverse() } else { order }
    });
    fields.fold(Ordering::Equal, Ordering::then)
}

/// Compares the whole order, then looks for some keys in every way.
pub(super) fn compare(found: IndexView<'_>, index: &Index, model: &Model, random: &mut Random) {
    let mut sorted = model.sorted(index);
    sorted.sort_by(|a, b| in_order(index, &a.0, &b.0).then(a.1.cmp(&b.1)));
    let all: Vec<_> = sorted.iter().map(|(_, id)| *id).collect();
    assert_eq!(found.len(), all.len() as u64, "`{}`", index.name);
    assert_eq!(ids(found.rows()), all, "`{}`", index.name);
    assert!(ids(found.rows().rev()).iter().eq(all.iter().rev()), "`{}` from its end", index.name);
    let table = model.table(index.table);
    let fields = index.fields.iter().map(|&field| &table.fields[table.place(field).unwrap()]);
    let fields: Vec<_> = fields.collect();
    for _ in 0..3 {
        let depth = usize::try_from(random.below(fields.len() as u64 + 1)).unwrap();
        let leading = leading(&fields[..depth], &sorted, model, random);
        equal(found, index, &sorted, &leading);
        cursor(found, index, &sorted, &leading, random);
        if let Some(next) = fields.get(depth) {
            let value = |random: &mut Random| match random.chance(50) && !sorted.is_empty() {
                true => random.pick(&sorted).0[depth].clone(),
                false => draw::value(random, model, next.ty, next.nullable),
            };
            let bounds = [0; 2].map(|_| bound(value(random), random));
            range(found, index, &sorted, &leading, bounds);
            let collated = index.collated.iter().any(|(field, _)| *field == next.number);
            if has_prefix(next.ty) && !collated {
                prefix(found, index, &sorted, &leading, random);
            }
        }
    }
}

/// Draws values of the first fields: mostly those of a row.
fn leading(fields: &[&Field], sorted: &Sorted, model: &Model, random: &mut Random) -> Vec<Value> {
    if random.chance(70) && !sorted.is_empty() {
        return random.pick(sorted).0[..fields.len()].to_vec();
    }
    fields.iter().map(|field| draw::value(random, model, field.ty, field.nullable)).collect()
}

fn matching(sorted: &Sorted, test: impl Fn(&[Value]) -> bool) -> Vec<u64> {
    sorted.iter().filter(|(key, _)| test(key)).map(|(_, id)| *id).collect()
}

fn equal(found: IndexView<'_>, index: &Index, sorted: &Sorted, leading: &[Value]) {
    let expected = matching(sorted, |key| index.key_cmp(leading, key).is_eq());
    let rows = || found.equal(&refs(leading));
    assert_eq!(ids(rows()), expected, "equal to {leading:?}");
    assert_eq!(rows().left().unwrap(), expected.len() as u64, "left of {leading:?}");
    assert_eq!(rows().count(), expected.len(), "count of {leading:?}");
    assert!(ids(rows().skip(1)).iter().eq(expected.iter().skip(1)), "skipping {leading:?}");
}

fn cursor(
    found: IndexView<'_>,
    index: &Index,
    sorted: &Sorted,
    leading: &[Value],
    random: &mut Random,
) {
    let order = |key: &[Value]| in_order(index, key, leading);
    let place = |end: Ordering| sorted.iter().take_while(|(key, _)| order(key) < end).count();
    let (before, behind) = (place(Ordering::Equal), place(Ordering::Greater));
    assert_eq!(found.rank(&refs(leading)).unwrap(), before as u64, "rank of {leading:?}");
    let nth = random.below(sorted.len() as u64 + 1);
    let row = found.nth(nth).unwrap().map(|row| row.id().0);
    assert_eq!(row, sorted.get(usize::try_from(nth).unwrap()).map(|(_, id)| *id));
    let mut cursor = found.cursor();
    let mut at = match random.below(4) {
        0 => {
            cursor.seek(&refs(leading)).unwrap();
            before
        }
        1 => {
            cursor.seek_behind(&refs(leading)).unwrap();
            behind
        }
        2 => {
            cursor.seek_rank(nth).unwrap();
            usize::try_from(nth).unwrap()
        }
        _ => {
            cursor.seek_last();
            sorted.len()
        }
    };
    for _ in 0..8 {
        assert_eq!(cursor.rank().unwrap(), at as u64);
        let (row, expected) = if random.chance(50) {
            let there = sorted.get(at);
            at += usize::from(there.is_some());
            (cursor.next(), there)
        } else {
            let there = at.checked_sub(1).and_then(|at| sorted.get(at));
            at -= usize::from(there.is_some());
            (cursor.prev(), there)
        };
        assert_eq!(row.map(|row| row.unwrap().id().0), expected.map(|(_, id)| *id));
    }
}

fn bound(value: Value, random: &mut Random) -> Bound<Value> {
    match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(value),
        _ => Bound::Excluded(value),
    }
}

fn range(
    found: IndexView<'_>,
    index: &Index,
    sorted: &Sorted,
    leading: &[Value],
    bounds: [Bound<Value>; 2],
) {
    let [low, high] = &bounds;
    let asked_for_null = bounds.contains(&Bound::Included(Value::Null));
    let expected = matching(sorted, |key| {
        let at = leading.len();
        let order = |bound: &Value| index.value_cmp(at, &key[at], bound);
        let above = match low {
            Bound::Unbounded => true,
            Bound::Included(low) => order(low).is_ge(),
            Bound::Excluded(low) => order(low).is_gt(),
        };
        let below = match high {
            Bound::Unbounded => true,
            Bound::Included(high) => order(high).is_le(),
            Bound::Excluded(high) => order(high).is_lt(),
        };
        let null = matches!(key[leading.len()], Value::Null);
        index.key_cmp(leading, key).is_eq() && above && below && (asked_for_null || !null)
    });
    let leading = refs(leading);
    let rows =
        || found.range(&leading, low.as_ref().map(Value::as_ref), high.as_ref().map(Value::as_ref));
    assert_eq!(ids(rows()), expected, "{bounds:?}");
    assert_eq!(rows().count(), expected.len(), "count of {bounds:?}");
    assert!(ids(rows().rev()).iter().eq(expected.iter().rev()), "{bounds:?} from its end");
}

fn prefix(
    found: IndexView<'_>,
    index: &Index,
    sorted: &Sorted,
    leading: &[Value],
    random: &mut Random,
) {
    let prefix = *random.pick(&["", "a", "ab", "é", "\0", "b\0"]);
    let expected = matching(sorted, |key| {
        let begins = match &key[leading.len()] {
            Value::String(text) => text.starts_with(prefix),
            Value::Bytes(bytes) => bytes.starts_with(prefix.as_bytes()),
            _ => false,
        };
        index.key_cmp(leading, key).is_eq() && begins
    });
    assert_eq!(ids(found.prefix(&refs(leading), prefix.as_bytes())), expected, "{prefix:?}");
}
