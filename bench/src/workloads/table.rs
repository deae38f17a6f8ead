//! How the figures are printed: a JSON line for each, or Markdown tables.

use super::target::Target;
use super::turns::{Contestant, Outcome};
use crate::race::Spread;

/// Prints a JSON line for each figure and for each target.
pub(crate) fn print_lines(outcomes: &[Outcome], rows: u64) {
    for outcome in outcomes {
        for contestant in &outcome.contestants {
            for (measure, unit) in measures(std::slice::from_ref(contestant)) {
                let Some(value) = contestant.spread(measure) else { continue };
                let line = serde_json::json!({
                    "workload": outcome.workload.key,
                    "engine": contestant.name,
                    "measure": measure,
                    "unit": unit,
                    "rows": rows,
                    "count": outcome.count,
                    "value": value.median,
                    "least": value.least,
                    "most": value.most,
                    "times Annals": outcome.beside_annals(contestant, measure),
                });
                println!("{line}");
            }
        }
        for target in outcome.workload.targets {
            let reached = outcome.reached(target, target.own.1);
            let cpu = outcome.in_cpu(target);
            let line = serde_json::json!({
                "workload": outcome.workload.key,
                "target": target.text,
                "reached": reached.map(|reached| reached.median),
                "least": reached.map(|reached| reached.least),
                "most": reached.map(|reached| reached.most),
                "in CPU": cpu.map(|cpu| cpu.median),
                "met": reached.map(|reached| target.is_met(reached.median)),
            });
            println!("{line}");
        }
    }
}

/// Prints a Markdown table of all targets, and one of the figures of each workload.
pub(crate) fn print_tables(outcomes: &[Outcome], rows: u64, turns: usize) {
    println!("{rows} rows where a table is large; medians of {turns} turns\n");
    println!("| workload | target | reached | least | most | in CPU | met |");
    println!("|---|---|---:|---:|---:|---:|---|");
    for outcome in outcomes {
        for target in outcome.workload.targets {
            print!("| {} | {} | ", outcome.workload.key, target.text);
            let Some(reached) = outcome.reached(target, target.own.1) else {
                println!("| | | | |");
                continue;
            };
            let met = if target.is_met(reached.median) { "yes" } else { "no" };
            let [median, least, most] = [reached.median, reached.least, reached.most].map(shown);
            let cpu = outcome.in_cpu(target).map_or(String::new(), |cpu| shown(cpu.median));
            println!("{median} | {least} | {most} | {cpu} | {met} |");
        }
    }
    for outcome in outcomes {
        let (count, unit) = (outcome.count, outcome.workload.unit.0);
        println!("\n{}: {count} {unit}s (`{}`)\n", outcome.workload.title, outcome.workload.key);
        let measures = measures(&outcome.contestants);
        print!("| | times Annals |");
        for (measure, unit) in &measures {
            print!(" {measure}{}{unit} |", if unit.is_empty() { "" } else { ", " });
        }
        println!("\n|---|---:|{}", "---:|".repeat(measures.len()));
        for contestant in &outcome.contestants {
            let times = outcome.beside_annals(contestant, "time");
            print!("| {} | {} |", contestant.name, times.map_or(String::new(), shown));
            for (measure, _) in &measures {
                let value = contestant.spread(measure);
                print!(" {} |", value.map_or(String::new(), |value| shown(value.median)));
            }
            println!();
        }
    }
}

/// Returns all measures, in the order of their first report.
fn measures(contestants: &[Contestant]) -> Vec<(&str, &str)> {
    let mut measures: Vec<(&str, &str)> = Vec::new();
    for figure in contestants.iter().flat_map(|contestant| contestant.turns.iter().flatten()) {
        if !measures.iter().any(|(known, _)| *known == figure.measure) {
            measures.push((&figure.measure, &figure.unit));
        }
    }
    measures
}

/// Returns a number with three digits that count, or all before the point.
fn shown(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

impl Contestant {
    /// Returns a figure of a turn.
    fn value(&self, turn: usize, measure: &str) -> Option<f64> {
        let figure = self.turns.get(turn)?.iter().find(|figure| figure.measure == measure)?;
        Some(figure.value)
    }

    /// Returns a figure of all turns.
    fn spread(&self, measure: &str) -> Option<Spread> {
        let values = (0..self.turns.len()).map(|turn| self.value(turn, measure));
        spread(values)
    }
}

/// Returns the results of turns; `None` unless all have one.
fn spread(values: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    let values: Vec<_> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| Spread::of(values))
}

impl Outcome {
    fn contestant(&self, name: &str) -> Option<&Contestant> {
        self.contestants.iter().find(|contestant| contestant.name == name)
    }

    /// Returns how many times that of Annals a figure is, as the median of all turns.
    fn beside_annals(&self, contestant: &Contestant, measure: &str) -> Option<f64> {
        let ours = self.contestant("Annals")?;
        let ratio = |turn| {
            let (own, ours) = (contestant.value(turn, measure)?, ours.value(turn, measure)?);
            Some(own / ours)
        };
        spread((0..ours.turns.len()).map(ratio)).map(|ratio| ratio.median)
    }

    /// Returns what was reached of a target for time in processor time, which other programs disturb less.
    fn in_cpu(&self, target: &Target) -> Option<Spread> {
        (target.own.1 == "time").then(|| self.reached(target, "CPU"))?
    }

    /// Returns the ratio to a target in a measure, turn by turn; `None` if a contestant is missing.
    fn reached(&self, target: &Target, measure: &str) -> Option<Spread> {
        let own = self.contestant(target.own.0)?;
        let others: Vec<_> = match target.beside {
            [] => self.contestants.iter().filter(|other| other.is_peer()).collect(),
            names => names.iter().map(|name| self.contestant(name)).collect::<Option<_>>()?,
        };
        spread((0..own.turns.len()).map(|turn| {
            let best = others.iter().filter_map(|other| other.value(turn, measure));
            target.reached(own.value(turn, measure)?, best.min_by(f64::total_cmp))
        }))
    }
}

impl Contestant {
    fn is_peer(&self) -> bool {
        self.is_engine && !self.name.starts_with("Annals")
    }
}
