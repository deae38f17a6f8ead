//! The difference of two directories, node by node: shared nodes are skipped.

use std::array::from_fn;
use std::sync::Arc;

use crate::pages::directory::{CHILDREN, Directory, Link, Node, PLACES};

/// The callbacks for the places of two directories.
struct Difference<'c, T, S> {
    is_same: S,
    cover: Option<&'c T>,
}

impl<T: Clone> Directory<T> {
    /// Returns the items that differ from those of `other` at the same places. Where only `other` has an item, the
    /// result has `cover`, if that is given. Visits the nodes that both have and don't share; with `cover`, also
    /// those that only `other` has.
    pub(super) fn without(
        &self,
        other: &Self,
        is_same: impl Fn(&T, &T) -> bool,
        cover: Option<&T>,
    ) -> Self {
        let height = self.height.max(other.height);
        let (own, other) = (self.raised(height), other.raised(height));
        let difference = Difference { is_same, cover };
        match difference.of_nodes(own.as_ref(), other.as_ref(), height) {
            Some(root) => Self { root: Some(root), height },
            None => Self::default(),
        }
    }

    /// Returns the root that a directory of that height would have.
    fn raised(&self, height: u32) -> Link<T> {
        let mut root = self.root.clone()?;
        for _ in self.height..height {
            root = Node::over(root);
        }
        Some(root)
    }
}

impl<T: Clone, S: Fn(&T, &T) -> bool> Difference<'_, T, S> {
    fn of_nodes(&self, own: Option<&Node<T>>, other: Option<&Node<T>>, height: u32) -> Link<T> {
        match (own, other) {
            (_, None) => return own.cloned(),
            (None, Some(_)) if self.cover.is_none() => return None,
            (Some(own), Some(other)) if own.is(other) => return None,
            _ => {}
        }
        if height == 0 {
            let items: [_; PLACES] = from_fn(|place| {
                let own = own.and_then(|own| own.item(place));
                self.of_items(own, other.and_then(|other| other.item(place)))
            });
            return items.iter().any(Option::is_some).then(|| Node::Leaf(Arc::new(items)));
        }
        let children: [_; CHILDREN] = from_fn(|place| {
            let own = own.and_then(|own| own.child(place));
            self.of_nodes(own, other.and_then(|other| other.child(place)), height - 1)
        });
        children.iter().any(Option::is_some).then(|| Node::Inner(Arc::new(children)))
    }

    fn of_items(&self, own: Option<&T>, other: Option<&T>) -> Option<T> {
        match (own, other) {
            (Some(own), Some(other)) if (self.is_same)(own, other) => None,
            (None, Some(_)) => self.cover.cloned(),
            _ => own.cloned(),
        }
    }
}

impl<T> Node<T> {
    fn item(&self, place: usize) -> Option<&T> {
        match self {
            Self::Leaf(items) => items.get(place)?.as_ref(),
            Self::Inner(_) => None,
        }
    }

    fn child(&self, place: usize) -> Option<&Self> {
        match self {
            Self::Inner(children) => children.get(place)?.as_ref(),
            Self::Leaf(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use annals_simulated::Rng;

    type Model = BTreeMap<usize, Arc<u64>>;

    fn place(rng: &mut Rng) -> usize {
        match rng.below(10) {
            0..6 => rng.index(200),
            6..9 => rng.index(20_000),
            _ => 1 << rng.below(40),
        }
    }

    fn change(directory: &mut Directory<Arc<u64>>, model: &mut Model, rng: &mut Rng) {
        for _ in 0..rng.below(300) {
            let place = place(rng);
            if rng.percent(70) {
                let item = Arc::new(rng.below(5));
                directory.set(place, Some(Arc::clone(&item)));
                model.insert(place, item);
            } else {
                directory.set(place, None);
                model.remove(&place);
            }
        }
    }

    fn compare(directory: &Directory<Arc<u64>>, model: &Model) {
        let mut found = Vec::new();
        directory.each(&mut |place, item: &Arc<u64>| found.push((place, Arc::as_ptr(item))));
        let expected: Vec<_> = model.iter().map(|(at, item)| (*at, Arc::as_ptr(item))).collect();
        assert_eq!(found, expected);
        for (at, item) in model {
            assert!(Arc::ptr_eq(directory.get(*at).unwrap(), item));
        }
    }

    #[test]
    fn the_difference_is_that_of_maps() {
        let mut rng = Rng::new(3);
        for round in 0..300 {
            let (mut first, mut first_model) = (Directory::default(), Model::new());
            change(&mut first, &mut first_model, &mut rng);
            // Mostly one that grew from the other, and shares much with it.
            let (mut second, mut second_model) = match round % 4 {
                0 => (Directory::default(), Model::new()),
                _ => (first.clone(), first_model.clone()),
            };
            change(&mut second, &mut second_model, &mut rng);
            let (own, other, own_model, other_model) = match rng.percent(50) {
                true => (first, second, first_model, second_model),
                false => (second, first, second_model, first_model),
            };

            let is_other = |at: &usize, item: &Arc<u64>| {
                other_model.get(at).is_some_and(|other| Arc::ptr_eq(other, item))
            };
            let mut expected = own_model.clone();
            expected.retain(|at, item| !is_other(at, item));
            compare(&own.without(&other, Arc::ptr_eq, None), &expected);

            let cover = Arc::new(9);
            for at in other_model.keys().filter(|at| !own_model.contains_key(at)) {
                expected.insert(*at, Arc::clone(&cover));
            }
            compare(&own.without(&other, Arc::ptr_eq, Some(&cover)), &expected);
            compare(&own, &own_model);
            compare(&other, &other_model);
        }
    }

    #[test]
    fn what_is_shared_is_not_looked_at() {
        let mut directory = Directory::default();
        (0..10_000).for_each(|place| directory.set(place, Some(place)));
        let before = directory.clone();
        directory.set(5_000, Some(1));
        let looked = std::cell::Cell::new(0);
        let is_same = |own: &usize, other: &usize| {
            looked.set(looked.get() + 1);
            own == other
        };
        let left = directory.without(&before, is_same, None);
        assert_eq!((left.get(5_000), left.get(5_001), looked.get()), (Some(&1), None, PLACES));
    }
}
