//! Figures, and their medians over all turns.

use std::time::Instant;

use crate::engines::Failure;

/// One number of one engine: the median of its turns.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) workload: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) engine: &'static str,
    pub(crate) value: f64,
}

/// All numbers of all turns.
#[derive(Default)]
pub(crate) struct Measured(Vec<Figure>);

impl Measured {
    pub(crate) fn add(
        &mut self,
        engine: &'static str,
        (workload, unit): (&'static str, &'static str),
        value: f64,
    ) {
        self.0.push(Figure { workload, unit, engine, value });
    }

    /// Returns the median of each workload and engine, the engines of a workload together, in the order
    /// of their first turn.
    pub(crate) fn medians(self) -> Vec<Figure> {
        let mut medians: Vec<(Figure, Vec<f64>)> = Vec::new();
        for figure in self.0 {
            let same = |(known, _): &&mut (Figure, Vec<f64>)| {
                (known.workload, known.unit, known.engine)
                    == (figure.workload, figure.unit, figure.engine)
            };
            match medians.iter_mut().find(same) {
                Some((_, values)) => values.push(figure.value),
                None => {
                    let values = vec![figure.value];
                    medians.push((figure, values));
                }
            }
        }
        let median = |(mut figure, mut values): (Figure, Vec<f64>)| {
            values.sort_by(f64::total_cmp);
            figure.value = values[values.len() / 2];
            figure
        };
        let mut figures: Vec<_> = medians.into_iter().map(median).collect();
        let mut order: Vec<&'static str> = Vec::new();
        for figure in &figures {
            if !order.contains(&figure.workload) {
                order.push(figure.workload);
            }
        }
        figures.sort_by_key(|figure| order.iter().position(|known| *known == figure.workload));
        figures
    }
}

/// Waits for the disk to finish the previous engine's writes, so that no engine pays for another. Where there is no
/// such command, the turns are only less even.
pub(crate) fn settle() {
    let _ = std::process::Command::new("sync").status();
}

/// Returns the wall time of each of `count` things.
pub(crate) fn nanoseconds(
    count: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures with the real clock")]
    let start = Instant::now();
    work()?;
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    Ok(start.elapsed().as_secs_f64() * 1e9 / count as f64)
}
