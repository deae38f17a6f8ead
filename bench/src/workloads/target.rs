//! The targets of Annals.

/// One thing that is to be reached in a workload.
pub(super) struct Target {
    /// In words.
    pub(super) text: &'static str,
    /// The contestant, by name, and the figure.
    pub(super) own: (&'static str, &'static str),
    /// The compared contestants, by names: the best of them. All other engines if there is none.
    pub(super) beside: &'static [&'static str],
    pub(super) bound: Bound,
}

/// The condition on a figure.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// At most this, whatever the others do.
    AtMost(f64),
    /// At most this many times that of the best of the others.
    TimesAtMost(f64),
    /// That of the best of the others is at least this many times its own.
    FasterAtLeast(f64),
}

impl Target {
    /// A target for the time that Annals takes.
    pub(super) const fn time(
        text: &'static str,
        beside: &'static [&'static str],
        bound: Bound,
    ) -> Self {
        Self { text, own: ("Annals", "time"), beside, bound }
    }

    /// A target for another figure of Annals alone.
    pub(super) const fn at_most(text: &'static str, measure: &'static str, most: f64) -> Self {
        Self { text, own: ("Annals", measure), beside: &[], bound: Bound::AtMost(most) }
    }

    /// Returns what was reached in a turn, from the own figure and that of the best of the others.
    pub(super) fn reached(&self, own: f64, best: Option<f64>) -> Option<f64> {
        match self.bound {
            Bound::AtMost(_) => Some(own),
            Bound::TimesAtMost(_) => best.map(|best| own / best),
            Bound::FasterAtLeast(_) => best.map(|best| best / own),
        }
    }

    /// True if that is enough.
    pub(super) fn is_met(&self, reached: f64) -> bool {
        match self.bound {
            Bound::AtMost(most) | Bound::TimesAtMost(most) => reached <= most,
            Bound::FasterAtLeast(least) => reached >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_on_its_own_side_only() {
        let reached = |bound, own| {
            let target = Target::time("", &[], bound);
            let reached = target.reached(own, Some(6.0)).unwrap();
            (reached, target.is_met(reached))
        };
        assert_eq!(reached(Bound::AtMost(3.0), 3.0), (3.0, true));
        assert_eq!(reached(Bound::AtMost(3.0), 3.5), (3.5, false));
        assert_eq!(reached(Bound::TimesAtMost(2.0), 12.0), (2.0, true));
        assert_eq!(reached(Bound::TimesAtMost(2.0), 15.0), (2.5, false));
        assert_eq!(reached(Bound::FasterAtLeast(2.0), 3.0), (2.0, true));
        assert_eq!(reached(Bound::FasterAtLeast(2.0), 4.0), (1.5, false));
        let alone = Target::time("", &[], Bound::FasterAtLeast(2.0));
        assert_eq!(alone.reached(3.0, None), None);
    }
}
