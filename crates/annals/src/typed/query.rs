//! Questions over rows whose reading can fail: filter, join, group, sort, and take the best.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::hash::Hash;
use std::iter::{Rev, Skip, Take};

use super::{Record, Rows, Summand, Table};
use crate::{Error, Result};

/// Rows, or what was made of them, with the methods that an iterator would have if reading couldn't fail.
///
/// A [`Table`], an [`Index`](super::Index) and each lookup in one begin a query. The closures get values, not results: an error of
/// a row goes through all steps, and comes out of the last one, which needs the only `?`.
///
/// ```
/// annals::schema!("tutorial.schema");
/// use tutorial::{city, person};
///
/// # fn main() -> annals::Result<()> {
/// # let db = tutorial::Database::in_memory()?;
/// # db.write(|tx| {
/// #     let [lille, lyon] = [tx.insert(city::New { name: "Lille" })?, tx.insert(city::New { name: "Lyon" })?];
/// #     for (last_name, home) in [("Petit", lille), ("Coulom", lille), ("Dupont", lyon)] {
/// #         tx.insert(person::New { first_name: "Anne", last_name, home: home.into() })?;
/// #     }
/// #     Ok(())
/// # })?;
/// let now = db.read();
/// let long_names = now.person().query().filter(|person| person.last_name().len() > 5).count()?;
/// assert_eq!(long_names, 2);
///
/// // The largest cities: a join, a group, an order.
/// let cities: Vec<_> = (now.person().query())
///     .join(|person| now.city().get(person.home()))
///     .group_by(|(_, city)| city.name().to_owned())
///     .count()
///     .top(10, |&(_, people)| people)
///     .collect()?;
/// assert_eq!(cities, [("Lille".to_owned(), 2), ("Lyon".to_owned(), 1)]);
/// # Ok(())
/// # }
/// ```
///
/// It goes through the rows once, in their order, when the last step asks for them. There is no planner: begin with
/// the index that leaves the fewest rows. What costs memory says so.
#[must_use = "it reads rows only when its last step asks for them"]
pub struct Query<I>(I);

impl<I> fmt::Debug for Query<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").finish_non_exhaustive()
    }
}

impl<I: Iterator> IntoIterator for Query<I> {
    type Item = I::Item;
    type IntoIter = I;
    fn into_iter(self) -> I {
        self.0
    }
}

impl<'a, R: Record> Table<'a, R> {
    /// Begins a query over all rows, in order of their ids.
    pub fn query(&self) -> Query<Rows<'a, R>> {
        Query(self.iter())
    }
}

impl<R: Record> Rows<'_, R> {
    /// Begins a query over these rows.
    pub const fn query(self) -> Query<Self> {
        Query(self)
    }
}

impl<I> Query<I> {
    /// Begins a query over anything that may fail, such as a history or what has no typed rows.
    pub fn over(rows: impl IntoIterator<IntoIter = I>) -> Self {
        Self(rows.into_iter())
    }
}

/// Steps: each gives a query again, and reads nothing yet.
impl<T, I: Iterator<Item = Result<T>>> Query<I> {
    /// Keeps the values that the closure is true for.
    pub fn filter(
        self,
        mut keeps: impl FnMut(&T) -> bool,
    ) -> Query<impl Iterator<Item = Result<T>>> {
        Query(self.0.filter(move |row| row.as_ref().map_or(true, &mut keeps)))
    }

    /// Makes something of each value.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Query<impl Iterator<Item = Result<U>>> {
        Query(self.0.map(move |row| row.map(&mut make)))
    }

    /// Makes something of each value, by a closure that reads other rows.
    pub fn try_map<U>(
        self,
        mut make: impl FnMut(T) -> Result<U>,
    ) -> Query<impl Iterator<Item = Result<U>>> {
        Query(self.0.map(move |row| row.and_then(&mut make)))
    }

    /// Adds to each row the one that it leads to: `.join(|person| now.city().get(person.home()))`. A row that leads
    /// to none is left out; [`try_map`](Self::try_map) keeps it.
    pub fn join<U>(
        self,
        mut find: impl FnMut(&T) -> Result<Option<U>>,
    ) -> Query<impl Iterator<Item = Result<(T, U)>>> {
        Query(self.0.filter_map(move |row| {
            let found = row.and_then(|row| Ok(find(&row)?.map(|other| (row, other))));
            found.transpose()
        }))
    }

    /// Adds to each row those that lead to it, in pairs: `.join_many(|city| now.person().by_home().with_home(city.id()))`.
    pub fn join_many<U, J: IntoIterator<Item = Result<U>>>(
        self,
        mut find: impl FnMut(&T) -> J,
    ) -> Query<impl Iterator<Item = Result<(T, U)>>>
    where
        T: Clone,
    {
        Query(self.0.flat_map(move |row| {
            let (row, error) = apart(row);
            let others = row.map(|row| (find(&row).into_iter(), row));
            let pairs = others
                .into_iter()
                .flat_map(|(others, row)| others.map(move |other| Ok((row.clone(), other?))));
            error.into_iter().map(Err).chain(pairs)
        }))
    }

    /// Goes from the end to the beginning. It must come before a `filter`.
    pub fn rev(self) -> Query<Rev<I>>
    where
        I: DoubleEndedIterator,
    {
        Query(self.0.rev())
    }

    /// Takes the first `n` values, and reads no more. Errors count.
    pub fn take(self, n: usize) -> Query<Take<I>> {
        Query(self.0.take(n))
    }

    /// Leaves the first `n` values out: of an index's rows without reading them.
    pub fn skip(self, n: usize) -> Query<Skip<I>> {
        Query(self.0.skip(n))
    }

    /// Keeps the first value of each key. Remembers the keys.
    pub fn distinct_by<K: Eq + Hash>(
        self,
        mut key: impl FnMut(&T) -> K,
    ) -> Query<impl Iterator<Item = Result<T>>> {
        let mut seen = HashSet::new();
        self.filter(move |row| seen.insert(key(row)))
    }

    /// Puts the values with the same key into groups, in the order in which the keys first occur. What is made of
    /// each is said next: [`count`](Grouped::count), [`sum`](Grouped::sum) or [`fold`](Grouped::fold).
    pub fn group_by<K: Eq + Hash + Clone, F: FnMut(&T) -> K>(self, key: F) -> Grouped<I, F> {
        Grouped { rows: self.0, key }
    }
}

/// Steps that need all values first: they read the rows at once, and an error comes out instead of the values.
impl<T, I: Iterator<Item = Result<T>>> Query<I> {
    /// Sorts by a key; equal ones keep their order. Holds all values.
    pub fn sort_by_key<K: Ord>(
        self,
        key: impl FnMut(&T) -> K,
    ) -> Query<impl DoubleEndedIterator<Item = Result<T>>> {
        let mut rows = self.collect::<Vec<T>>();
        if let Ok(rows) = &mut rows {
            rows.sort_by_key(key);
        }
        all_or_error(rows)
    }

    /// Returns the `n` values with the greatest keys, the greatest first; of equal ones the first. For the least,
    /// give a [`Reverse`] as key. Holds 2 `n` values.
    pub fn top<K: Ord>(
        self,
        n: usize,
        mut key: impl FnMut(&T) -> K,
    ) -> Query<impl DoubleEndedIterator<Item = Result<T>>> {
        self.top_by(n, move |a, b| key(a).cmp(&key(b)))
    }

    /// Returns the `n` greatest values in an order of the program's own, such as `f64::total_cmp`; else as
    /// [`top`](Self::top).
    pub fn top_by(
        self,
        n: usize,
        compare: impl FnMut(&T, &T) -> Ordering,
    ) -> Query<impl DoubleEndedIterator<Item = Result<T>>> {
        all_or_error(self.greatest(n, compare))
    }

    fn greatest(self, n: usize, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
        // Sorting when there are twice as many costs each value a logarithm of `n`, and no heap.
        let full = n.saturating_mul(2).max(64);
        let mut best: Vec<T> = Vec::new();
        let mut shorten = |best: &mut Vec<T>| {
            best.sort_by(|a, b| compare(b, a));
            best.truncate(n);
        };
        for row in self.0 {
            best.push(row?);
            if best.len() == full {
                shorten(&mut best);
            }
        }
        shorten(&mut best);
        Ok(best)
    }
}

/// Last steps: they go through the rows.
///
/// # Errors
/// Each returns the first error of the rows, or of a closure.
impl<T, I: Iterator<Item = Result<T>>> Query<I> {
    /// Collects the values: `let names: Vec<_> = query.collect()?`.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn collect<B: FromIterator<T>>(self) -> Result<B> {
        self.0.collect()
    }

    /// Returns the first value.
    ///
    /// # Errors
    /// It can't be read.
    pub fn first(mut self) -> Result<Option<T>> {
        self.0.next().transpose()
    }

    /// Counts the values, and reads each. Without a `filter` the `count` of the rows themselves, as in
    /// `now.city().by_name().prefix("L").count()`, reads none.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn count(self) -> Result<u64> {
        self.fold(0, |n, _| n + 1)
    }

    /// Calls the closure with each value.
    ///
    /// # Errors
    /// The first of the rows'; the closure was called with the values before it.
    pub fn for_each(mut self, mut work: impl FnMut(T)) -> Result<()> {
        self.0.try_for_each(|row| row.map(&mut work))
    }

    /// Returns true if the closure is true for one of the values; reads no more then.
    ///
    /// # Errors
    /// The first of the rows' before that.
    pub fn any(self, is_it: impl FnMut(&T) -> bool) -> Result<bool> {
        Ok(self.filter(is_it).first()?.is_some())
    }

    /// Returns true if the closure is true for all values; reads no more after one for which it isn't.
    ///
    /// # Errors
    /// The first of the rows' before that.
    pub fn all(self, mut is_it: impl FnMut(&T) -> bool) -> Result<bool> {
        self.any(move |value| !is_it(value)).map(|one_is_not| !one_is_not)
    }

    /// Returns the last value. It reads all of them; `rev().first()` reads one.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn last(self) -> Result<Option<T>> {
        self.fold(None, |_, value| Some(value))
    }

    /// Adds up what the closure returns: numbers or decimals.
    ///
    /// # Errors
    /// The first of the rows'; the sum doesn't fit its type (`Invalid`).
    pub fn sum<S: Summand>(mut self, mut value: impl FnMut(&T) -> S) -> Result<S> {
        self.0.try_fold(S::default(), |sum, row| sum.plus(value(&row?)))
    }

    /// Returns the average of what the closure returns, numbers or decimals, as a float; `None` if there are no values.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn average<S: Summand>(self, mut value: impl FnMut(&T) -> S) -> Result<Option<f64>> {
        let start = (0.0, 0_u64);
        let (sum, n) = self.fold(start, |(sum, n), row| (sum + value(&row).to_f64(), n + 1))?;
        Ok((n > 0).then(|| sum / n as f64))
    }

    /// Returns the least value in an order of the program's own, such as `f64::total_cmp`; of equal ones the first.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn min_by(self, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Option<T>> {
        self.fold(None, |least: Option<T>, value| match least {
            Some(least) if compare(&least, &value).is_le() => Some(least),
            _ => Some(value),
        })
    }

    /// Returns the greatest value in an order of the program's own; of equal ones the last.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn max_by(self, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Option<T>> {
        self.min_by(|a, b| compare(b, a).then(Ordering::Greater))
    }

    /// Returns the least value.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn min(self) -> Result<Option<T>>
    where
        T: Ord,
    {
        Ok(self.map(Reverse).max()?.map(|Reverse(least)| least))
    }

    /// Returns the greatest value.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn max(mut self) -> Result<Option<T>>
    where
        T: Ord,
    {
        self.0.try_fold(None, |most: Option<T>, row| Ok(most.max(Some(row?))))
    }

    /// Adds each value to `start`, by the closure: `query.fold(0, |n, row| n + row.size())?`.
    ///
    /// # Errors
    /// The first of the rows'.
    pub fn fold<A>(mut self, start: A, mut add: impl FnMut(A, T) -> A) -> Result<A> {
        self.0.try_fold(start, |sum, row| Ok(add(sum, row?)))
    }
}

/// Values in groups; what is made of each group is said by a method.
#[must_use = "it reads rows only when its last step asks for them"]
pub struct Grouped<I, F> {
    rows: I,
    key: F,
}

impl<I, F> fmt::Debug for Grouped<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grouped").finish_non_exhaustive()
    }
}

impl<T, K, I, F> Grouped<I, F>
where
    K: Eq + Hash + Clone,
    I: Iterator<Item = Result<T>>,
    F: FnMut(&T) -> K,
{
    /// Returns each key with the number of its values. Where an index has the key,
    /// [`Index::groups`](super::Index::groups) counts without reading the rows.
    pub fn count(self) -> Query<impl DoubleEndedIterator<Item = Result<(K, u64)>>> {
        self.fold(|| 0, |n, _| n + 1)
    }

    /// Returns each key with the sum of what the closure returns for its values. A sum that doesn't fit its type is
    /// an error (`Invalid`).
    pub fn sum<S: Summand>(
        self,
        mut value: impl FnMut(&T) -> S,
    ) -> Query<impl DoubleEndedIterator<Item = Result<(K, S)>>> {
        let sums = self.folded(S::default, |sum, row| {
            *sum = std::mem::take(sum).plus(value(&row))?;
            Ok(())
        });
        all_or_error(sums)
    }

    /// Returns each key with what the closure added its values to: `.fold(|| 0, |n, row| n + row.size())`. Reads the rows
    /// at once, and holds what it returns.
    pub fn fold<A>(
        self,
        mut start: impl FnMut() -> A,
        mut add: impl FnMut(A, T) -> A,
    ) -> Query<impl DoubleEndedIterator<Item = Result<(K, A)>>> {
        let folded = self.folded(
            || Some(start()),
            |group, row| {
                *group = group.take().map(|group| add(group, row));
                Ok(())
            },
        );
        let there = |(key, group): (K, Option<A>)| Some((key, group?));
        all_or_error(folded.map(|groups| groups.into_iter().filter_map(there).collect()))
    }

    fn folded<A>(
        mut self,
        mut start: impl FnMut() -> A,
        mut add: impl FnMut(&mut A, T) -> Result<()>,
    ) -> Result<Vec<(K, A)>> {
        let mut places: HashMap<K, usize> = HashMap::new();
        let mut groups: Vec<(K, A)> = Vec::new();
        for row in self.rows {
            let row = row?;
            let place = match places.entry((self.key)(&row)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    groups.push((new.key().clone(), start()));
                    *new.insert(groups.len() - 1)
                }
            };
            if let Some((_, group)) = groups.get_mut(place) {
                add(group, row)?;
            }
        }
        Ok(groups)
    }
}

/// Begins a query over values that were collected, or over the error that came instead.
fn all_or_error<T>(rows: Result<Vec<T>>) -> Query<impl DoubleEndedIterator<Item = Result<T>>> {
    let (rows, error) = apart(rows);
    Query(error.into_iter().map(Err).chain(rows.into_iter().flatten().map(Ok)))
}

fn apart<T>(result: Result<T>) -> (Option<T>, Option<Error>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}
