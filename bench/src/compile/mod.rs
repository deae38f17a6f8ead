//! The build time of a large schema, and its size in a program.
//!
//! Three packages are built again in turn, with everything that they need built before: one without a schema, a
//! library that shares the whole API of one, and a program that uses each table. The report has how much longer the
//! others take than the first, in the same turn. The program is run, too, and must have read the values that it
//! wrote.

mod project;
mod schema;

use std::path::PathBuf;

use crate::engines::Failure;
use crate::figures::{Figure, Measured};
use project::{BARE, Cost, Profile, Project, SHARED, USED};

/// How large the schema is.
#[derive(clap::Args)]
pub(crate) struct Size {
    /// Tables of the schema.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    tables: u32,
    /// Fields of each table; indexes need the first nine.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(9..=1000))]
    fields: u32,
    /// The built project.
    #[arg(long, value_delimiter = ',', default_values = ["debug", "release"])]
    profiles: Vec<Profile>,
    /// A folder for what is built, which a further run finds again; a temporary one unless set.
    #[arg(long)]
    target: Option<PathBuf>,
}

impl Size {
    /// Returns the name of the compiled program.
    pub(crate) fn title(&self) -> String {
        format!("A schema of {} tables with {} fields each", self.tables, self.fields)
    }

    /// Returns the number of tables.
    pub(crate) fn tables(&self) -> u64 {
        self.tables.into()
    }
}

/// Builds all, in each turn.
pub(crate) fn run(size: &Size, turns: usize) -> Result<Vec<Figure>, Failure> {
    let folder = tempfile::tempdir()?;
    let built = tempfile::tempdir()?;
    let target = match &size.target {
        Some(target) => std::path::absolute(target)?,
        None => built.path().to_owned(),
    };
    let project = Project::new(folder.path(), &target, (size.tables, size.fields))?;
    let mut measured = Measured::default();
    generated(size, &mut measured)?;
    for &profile in &size.profiles {
        project.prepare(profile)?;
        for turn in 0..turns {
            let mut costs = [(BARE, None), (SHARED, None), (USED, None)];
            costs.rotate_left(turn % 3);
            for (package, cost) in &mut costs {
                *cost = Some(project.build(package, profile)?);
            }
            let of = |package| costs.iter().find(|(own, _)| *own == package).and_then(|own| own.1);
            for package in [SHARED, USED] {
                if let (Some(bare), Some(own)) = (of(BARE), of(package)) {
                    added(profile, package, (bare, own), &mut measured);
                }
            }
        }
        let (sum, expected) = (project.run(USED, profile)?, schema::expected(size.tables));
        if sum != expected.to_string() {
            return Err(format!("the program read {sum}, and not {expected}").into());
        }
        let bytes = project.len(USED, profile)?.saturating_sub(project.len(BARE, profile)?);
        let workload = match profile {
            Profile::Debug => {
                "added to a debug program that uses each table, with what a debugger needs"
            }
            Profile::Release => "added to a release program that uses each table",
        };
        measured.add("Annals", (workload, "bytes"), float(bytes));
    }
    Ok(measured.medians())
}

/// Returns how long the generated code is.
fn generated(size: &Size, measured: &mut Measured) -> Result<(), Failure> {
    let text = schema::text(size.tables, size.fields);
    let file = annals_schema::parse_files(&[("large.schema", text.as_str())])
        .map_err(|mistakes| annals_schema::render_all(&mistakes, ""))?;
    let code = annals_codegen::expand_module(&file, "large");
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.trim().is_empty();
    let lines: Vec<_> = code.lines().filter(is_code).collect();
    let bytes: usize = lines.iter().map(|line| line.trim_start().len()).sum();
    measured.add(
        "Annals",
        ("generated code, without comments", "lines"),
        float(lines.len() as u64),
    );
    measured.add("Annals", ("generated code, without comments", "bytes"), float(bytes as u64));
    measured.add("Annals", ("generated code", "bytes"), float(code.len() as u64));
    Ok(())
}

/// Notes how much longer one took than the other.
fn added(profile: Profile, package: &str, (bare, own): (Cost, Cost), measured: &mut Measured) {
    let workload = match (profile, package) {
        (Profile::Debug, SHARED) => "added to the debug build of a library that shares all of it",
        (Profile::Debug, _) => "added to the debug build of a program that uses each table",
        (Profile::Release, SHARED) => {
            "added to the release build of a library that shares all of it"
        }
        (Profile::Release, _) => "added to the release build of a program that uses each table",
    };
    measured.add("Annals", (workload, "s"), own.wall - bare.wall);
    if let Some((own, bare)) = own.processor.zip(bare.processor) {
        measured.add("Annals", (workload, "s of processor time"), own - bare);
    }
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn float(number: u64) -> f64 {
    number as f64
}
