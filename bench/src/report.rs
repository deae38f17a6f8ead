//! How the figures are printed.

#[cfg(unix)]
use crate::backfill_floor::Line;
use crate::figures::Figure;
use crate::race::Outcome;

/// The unit of a comparison.
const TIMES: &str = "times as long as";

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

/// Prints a Markdown table: a line for each workload, and what the peers take compared with Annals, where
/// it took part.
pub(crate) fn print_table(figures: &[Figure], title: &str) {
    println!("{title}; medians\n");
    println!("| workload | unit | engine | value | times Annals |\n|---|---|---|---:|---:|");
    for figure in figures {
        let is_ours = |other: &&Figure| {
            (other.workload, other.unit, other.engine) == (figure.workload, figure.unit, "Annals")
        };
        let ours = figures.iter().find(is_ours).map_or(f64::NAN, |ours| ours.value);
        println!(
            "| {} | {} | {} | {} | {} |",
            figure.workload,
            figure.unit,
            figure.engine,
            shown(figure.value, if figure.value < 10.0 { 2 } else { 1 }),
            shown(figure.value / ours, if figure.value < ours / 10.0 { 4 } else { 2 })
        );
    }
    println!();
}

/// Returns a number with the given digits after the point; a missing one as a dash.
fn shown(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

/// Prints a JSON line for each runner of each race.
pub(crate) fn print_race_lines(outcomes: &[Outcome]) {
    for outcome in outcomes {
        for line in &outcome.lines {
            let line = serde_json::json!({
                "race": outcome.title,
                "who": line.name,
                "us/commit": line.micros.median,
                "commits/s": 1e6 / line.micros.median,
                "measure": TIMES,
                "beside": line.beside,
                "median": line.ratio.median,
                "least": line.ratio.least,
                "most": line.ratio.most,
                "target": line.target,
                "repeated": outcome.repeated,
            });
            println!("{line}");
        }
    }
}

/// Prints a Markdown table for each race.
pub(crate) fn print_races(outcomes: &[Outcome]) {
    for outcome in outcomes {
        let course = outcome.course;
        println!(
            "{}: {} turns of {} slices of {} commits; {} turns run again\n",
            outcome.title, course.turns, course.rounds, course.slice, outcome.repeated
        );
        println!(
            "| who | us/commit | commits/s | {} | median | least | most | target |\n\
             |---|---:|---:|---|---:|---:|---:|---|",
            TIMES
        );
        for line in &outcome.lines {
            let (micros, ratio) = (line.micros.median, line.ratio);
            print!("| {} | {micros:.1} | {:.0} | ", line.name, 1e6 / micros);
            match line.beside {
                Some(beside) => println!(
                    "{beside} | {:.2} | {:.2} | {:.2} | {} |",
                    ratio.median, ratio.least, ratio.most, line.target
                ),
                None => println!("| | | | |"),
            }
        }
        println!();
    }
}

/// Prints a JSON line for each writer with each layout.
#[cfg(unix)]
pub(crate) fn print_floor_lines(lines: &[Line], mib: u64) {
    for line in lines {
        let line = serde_json::json!({
            "layout": line.layout,
            "writer": line.writer,
            "MiB": mib,
            "MiB/s": line.rate.median,
            "least": line.rate.least,
            "most": line.rate.most,
            "beside raw": line.beside_raw.median,
            "beside loop": line.beside_loop.median,
        });
        println!("{line}");
    }
}

/// Prints a Markdown table for each layout.
#[cfg(unix)]
pub(crate) fn print_floors(lines: &[Line], mib: u64) {
    let mut layout = "";
    for line in lines {
        if line.layout != layout {
            layout = line.layout;
            println!(
                "\n{mib} MiB in pages of 16 KiB, {layout}; medians\n\n\
                 | writer | MiB/s | least | most | times 1 MiB writes | times the loop |\n\
                 |---|---:|---:|---:|---:|---:|"
            );
        }
        let (rate, raw, beside) = (line.rate, line.beside_raw, line.beside_loop);
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} |",
            line.writer, rate.median, rate.least, rate.most, raw.median, beside.median
        );
    }
}
