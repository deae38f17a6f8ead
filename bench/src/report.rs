//! How the figures are printed.

use crate::workload::Figure;

/// Prints a JSON line for each figure.
pub(crate) fn print_lines(figures: &[Figure], rows: u64) {
    for figure in figures {
        let line = serde_json::json!({
            "workload": figure.workload,
            "engine": figure.engine,
            "rows": rows,
            "value": figure.value,
            "unit": figure.unit,
        });
        println!("{line}");
    }
}

/// Prints a Markdown table: a line for each workload, and what the peers take compared with Annals.
pub(crate) fn print_table(figures: &[Figure], rows: u64) {
    println!("{rows} rows of (\"TOTO\", i); medians\n");
    println!("| workload | unit | engine | value | times Annals |\n|---|---|---|---:|---:|");
    for figure in figures {
        let ours = figures
            .iter()
            .find(|other| other.workload == figure.workload && other.engine == "Annals")
            .map_or(f64::NAN, |ours| ours.value);
        println!(
            "| {} | {} | {} | {:.1} | {:.2} |",
            figure.workload,
            figure.unit,
            figure.engine,
            figure.value,
            figure.value / ours
        );
    }
}
