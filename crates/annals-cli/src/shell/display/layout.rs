//! Fits the columns of a table into the width of a screen.

/// A column, before and after it was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// How wide its heading is.
    pub(crate) heading: usize,
    /// How wide its widest cell is.
    pub(crate) cells: usize,
    /// True if its cells may be cut.
    pub(crate) is_elastic: bool,
    /// How wide it is shown.
    pub(crate) width: usize,
}

/// The separator of columns.
pub(crate) const GAP: usize = 2;
/// Headings and cells are not cut below this.
const NARROWEST: usize = 8;

impl Column {
    /// Returns how wide it would be, if there were room.
    pub(crate) fn natural(&self) -> usize {
        self.heading.max(self.cells)
    }

    /// Returns how narrow it can be.
    fn least(&self) -> usize {
        let cells = if self.is_elastic { self.cells.min(NARROWEST) } else { self.cells };
        cells.max(self.heading.min(NARROWEST))
    }

    /// Returns the total width if no column may be wider than `most`, except those that must.
    fn at_most(&self, most: usize) -> usize {
        self.natural().min(most.max(self.least()))
    }
}

/// Sets the width of each column so that together they take at most `total`, and returns how many of
/// them can be shown: the widest are cut first, then the last are dropped. The first one stays.
pub(crate) fn fit(columns: &mut [Column], total: Option<usize>) -> usize {
    let widest = columns.iter().map(Column::natural).max().unwrap_or(0);
    let total = total.unwrap_or(usize::MAX);
    let taken = |columns: &[Column], most: usize| {
        let widths: usize = columns.iter().map(|column| column.at_most(most)).sum();
        widths + GAP * columns.len().saturating_sub(1)
    };
    let mut shown = columns.len();
    while shown > 1 && taken(columns.get(..shown).unwrap_or_default(), 0) > total {
        shown -= 1;
    }
    let kept = columns.get_mut(..shown).unwrap_or_default();
    // The largest width at which all fits is in `most..beyond`.
    let (mut most, mut beyond) = (0, widest + 1);
    while beyond - most > 1 {
        let middle = most + (beyond - most) / 2;
        if taken(kept, middle) <= total {
            most = middle;
        } else {
            beyond = middle;
        }
    }
    for column in kept {
        column.width = column.at_most(most);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(columns: &[(usize, usize, bool)], total: Option<usize>) -> Vec<usize> {
        let mut columns: Vec<Column> = columns
            .iter()
            .map(|&(heading, cells, is_elastic)| Column { heading, cells, is_elastic, width: 0 })
            .collect();
        let shown = fit(&mut columns, total);
        columns.truncate(shown);
        columns.iter().map(|column| column.width).collect()
    }

    #[test]
    fn where_there_is_room_nothing_is_cut() {
        let columns = [(2, 5, false), (4, 100, true), (30, 2, false)];
        assert_eq!(fitted(&columns, None), [5, 100, 30]);
        assert_eq!(fitted(&columns, Some(139)), [5, 100, 30]);
    }

    #[test]
    fn the_widest_are_cut_first() {
        assert_eq!(
            fitted(&[(2, 5, false), (4, 100, true), (30, 2, false)], Some(100)),
            [5, 61, 30]
        );
        assert_eq!(fitted(&[(2, 5, false), (4, 50, true), (4, 60, true)], Some(49)), [5, 20, 20]);
        // A number isn't cut, its heading is.
        assert_eq!(fitted(&[(2, 5, false), (40, 12, false), (4, 60, true)], Some(29)), [5, 12, 8]);
    }

    #[test]
    fn what_doesnt_fit_at_all_is_dropped_from_the_end() {
        let columns = [(2, 5, false), (8, 20, true), (8, 20, true), (8, 20, true)];
        assert_eq!(fitted(&columns, Some(25)), [5, 8, 8]);
        assert_eq!(fitted(&columns, Some(24)), [5, 17]);
        assert_eq!(fitted(&columns, Some(3)), [5]);
    }

    #[test]
    fn it_never_takes_more_than_there_is() {
        for total in 5..120 {
            let columns =
                [(2, 3, false), (9, 31, true), (20, 20, false), (3, 0, true), (1, 90, true)];
            let widths = fitted(&columns, Some(total));
            assert!(widths.iter().sum::<usize>() + GAP * (widths.len() - 1) <= total, "{total}");
        }
    }
}
