//! Finding things by their names: the numbers of a list's things, in the order of their names.
//!
//! Looking up compares O(log n) names; adding and removing moves four bytes for each of the others.

use std::cmp::Ordering;

/// A thing of a list that is sorted by numbers.
pub(crate) trait Listed {
    /// Returns the number by which the list is sorted.
    fn number(&self) -> u32;
    /// Returns the name, which nothing else in the list has.
    fn name(&self) -> &str;
}

/// True if a text is a name of the schema language.
pub(crate) fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    starts && goes_on && name.len() <= 255
}

/// Finds the thing with a number in a list: at that place, as long as nothing was dropped.
pub(crate) fn by_number<T>(list: &[T], number: u32, of: impl Fn(&T) -> u32) -> Option<&T> {
    match list.get(number as usize) {
        Some(item) if of(item) == number => Some(item),
        _ => list.get(list.binary_search_by_key(&number, of).ok()?),
    }
}

/// The numbers of all things of a list, sorted by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names(Vec<u32>);

impl Names {
    /// Finds the thing of a name in the list whose names these are.
    pub(crate) fn find<'l, T: Listed>(&self, list: &'l [T], name: &str) -> Option<&'l T> {
        let place = self.search(list, name).ok()?;
        by_number(list, *self.0.get(place)?, T::number)
    }

    /// Adds the name of the thing with a number, which is in the list already.
    pub(crate) fn insert<T: Listed>(&mut self, list: &[T], number: u32) {
        let Some(item) = by_number(list, number, T::number) else { return };
        if let Err(place) = self.search(list, item.name()) {
            self.0.insert(place, number);
        }
    }

    /// Removes the name of the thing with a number, which is still in the list under it.
    pub(crate) fn remove<T: Listed>(&mut self, list: &[T], number: u32) {
        let Some(item) = by_number(list, number, T::number) else { return };
        if let Ok(place) = self.search(list, item.name()) {
            self.0.remove(place);
        }
    }

    /// Removes the names of things that aren't in the list any more.
    pub(crate) fn retain<T: Listed>(&mut self, list: &[T]) {
        self.0.retain(|number| by_number(list, *number, T::number).is_some());
    }

    fn search<T: Listed>(&self, list: &[T], name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|&number| {
            let item = by_number(list, number, T::number);
            item.map_or(Ordering::Less, |item| item.name().cmp(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static COMPARED: Cell<u32> = const { Cell::new(0) };
    }

    struct Item {
        number: u32,
        name: String,
    }

    impl Listed for Item {
        fn number(&self) -> u32 {
            self.number
        }

        fn name(&self) -> &str {
            COMPARED.set(COMPARED.get() + 1);
            &self.name
        }
    }

    /// Returns how many names are visited to add `count`, rename and find each, and remove half.
    fn compared(count: u32) -> u32 {
        COMPARED.set(0);
        let (mut list, mut names) = (Vec::new(), Names::default());
        for number in 0..count {
            let name = format!("n{}", number.wrapping_mul(0x9E37_79B9));
            list.push(Item { number, name });
            names.insert(&list, number);
        }
        for number in 0..count {
            names.remove(&list, number);
            list[number as usize].name.push('x');
            names.insert(&list, number);
            let found = names.find(&list, &list[number as usize].name.clone()).unwrap();
            assert_eq!(found.number, number);
        }
        for number in (0..count).step_by(2) {
            let at = list.iter().position(|item| item.number == number).unwrap();
            names.remove(&list, number);
            let gone = list.remove(at);
            assert!(names.find(&list, &gone.name).is_none());
        }
        assert!(list.iter().all(|item| names.find(&list, &item.name).is_some()));
        COMPARED.get()
    }

    #[test]
    fn looking_up_a_name_looks_at_a_logarithm_of_them() {
        let (small, large) = (compared(1000), compared(8000));
        // Eight times as many, each with three more steps of about ten.
        assert!(large < small * 8 * 14 / 10, "{small} and {large}");
    }
}
