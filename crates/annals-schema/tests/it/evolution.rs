//! Random histories of schemas: as text and back, and from any version to any later one.

use annals_schema::{
    Collated, Command, FieldNumber, Index, OnDelete, Relation, Schema, TableNumber, Type, Value,
    compare, first_difference, parse,
};

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    fn name(&mut self) -> String {
        const NAMES: [&str; 9] = ["a", "b", "c", "d", "city", "person", "type", "x_1", "_"];
        NAMES[self.below(NAMES.len())].to_owned()
    }
}

/// Returns a command that may fit a schema.
fn command(random: &mut Random, schema: &Schema) -> Option<Command> {
    let name = random.name();
    let table = random.pick(schema.tables());
    let number = table.map(|table| table.number);
    let field = table.and_then(|table| random.pick(&table.fields)).map(|field| field.number);
    let variant = u16::try_from(random.below(5)).unwrap();
    Some(match random.below(24) {
        18 | 19 => Command::AddVariant { table: number?, field: field?, name },
        20 | 21 => Command::RenameVariant { table: number?, field: field?, variant, name },
        22 | 23 => Command::DropVariant { table: number?, field: field?, variant },
        0 | 1 => Command::CreateTable { name },
        2 => Command::RenameTable { table: number?, name },
        3 => Command::DropTable { table: number? },
        4 => Command::RenameField { table: number?, field: field?, name },
        5 => Command::DropField { table: number?, field: field? },
        6 => Command::SetSingleRow { table: number?, single: random.below(2) == 0 },
        7 => Command::Custom { name },
        16 | 17 => Command::SetHistoryIndex { table: number?, indexed: random.below(2) == 0 },
        8 => Command::DropIndex { index: random.pick(schema.indexes())?.number },
        9..12 => {
            let other = random.pick(&table?.fields).map(|field| field.number);
            let fields = if other == field { vec![field?] } else { vec![field?, other?] };
            let descending = fields.iter().copied().filter(|_| random.below(3) == 0).collect();
            let is_string = |number: &FieldNumber| {
                table.and_then(|table| table.field(*number)).is_some_and(|f| f.ty == Type::String)
            };
            let strings: Vec<_> = fields.iter().copied().filter(is_string).collect();
            let collate = |field| {
                let locale =
                    ["de", "und-u-ks-level2"][usize::from(random.below(2) == 0)].to_owned();
                (random.below(2) == 0).then_some(Collated { field, locale, version: String::new() })
            };
            let collated = strings.into_iter().filter_map(collate).collect();
            let unique = random.below(2) == 0;
            Command::CreateIndex { name, table: number?, fields, descending, collated, unique }
        }
        _ => add_field(random, schema, number?, name),
    })
}

fn add_field(random: &mut Random, schema: &Schema, table: TableNumber, name: String) -> Command {
    const RULES: [OnDelete; 4] =
        [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];
    let target = random.pick(schema.tables()).map_or(table, |table| table.number);
    let ty = match random.below(6) {
        0..5 => *random.pick(&Type::samples()).unwrap(),
        _ => Type::Reference(target, RULES[random.below(4)]),
    };
    let default = match ty {
        Type::Int32 => Some(Value::Int32(-5)),
        Type::Float64 => Some(Value::Float64(f64::NAN)),
        Type::String => Some(Value::String("two \"words\"\n".to_owned())),
        _ => None,
    };
    let nullable = random.below(2) == 0 || ty.is_always_nullable();
    Command::AddField { table, name, ty, nullable, default }
}

/// Returns a schema with a random history.
fn history(seed: u64) -> Schema {
    let mut random = Random(seed);
    let mut schema = Schema::default();
    for _ in 0..random.below(60) {
        if let Some(command) = command(&mut random, &schema) {
            let before = schema.clone();
            if schema.apply(command).is_err() {
                assert_eq!(schema, before, "what fails changes nothing");
            }
        }
    }
    schema
}

fn first(schema: &Schema, count: usize) -> Schema {
    let mut start = Schema::default();
    for command in schema.commands().iter().take(count) {
        start.apply(command.clone()).unwrap();
    }
    start
}

fn ordered(schema: &Schema) -> Vec<&Command> {
    schema.commands().iter().filter(|command| command.is_ordered()).collect()
}

/// The fields of an index, each with its order.
type Columns = Vec<(FieldNumber, String)>;

fn indexes(schema: &Schema) -> Vec<(&str, TableNumber, Columns, bool)> {
    let parts = |index: &'_ Index| (index.table, index.unique);
    let mut all: Vec<_> = schema
        .indexes()
        .iter()
        .map(|index| {
            let (table, unique) = parts(index);
            (index.name.as_str(), table, index.columns().collect(), unique)
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn text_of_any_history_reads_as_that_history() {
    for seed in 0..500 {
        let schema = history(seed);
        let text = schema.to_text();
        assert_eq!(parse(&text).unwrap().schema, schema, "seed {seed}:\n{text}");
    }
}

#[test]
fn any_version_is_upgraded_to_any_later_one() {
    let mut longest = 0;
    for seed in 0..400 {
        let whole = history(seed);
        for count in 0..=whole.commands().len() {
            let start = first(&whole, count);
            check_upgrade(&start, &whole, &format!("seed {seed}, {count} commands"));
            longest = longest.max(whole.commands().len());
        }
    }
    assert!(longest > 25, "histories are long enough: {longest}");
}

/// Somebody, say a newer program, made and dropped indexes and rules of his own.
#[test]
fn nothing_is_dropped_that_the_program_does_not_know() {
    let (mut newer, mut upgraded) = (0, 0);
    for seed in 0..800 {
        let whole = history(seed);
        let count = Random(seed).below(whole.commands().len() + 1);
        let mut file = first(&whole, count);
        let mut random = Random(seed + 1000);
        for _ in 0..random.below(20) {
            match command(&mut random, &file) {
                Some(command) if !command.is_ordered() => drop(file.apply(command)),
                _ => {}
            }
        }
        match compare(&file, &whole) {
            Relation::Newer(more) => {
                newer += 1;
                assert!(!more.lines.is_empty(), "seed {seed}");
            }
            Relation::Upgrade(plan) => {
                upgraded += 1;
                let drops = plan.steps().iter().filter_map(|step| match step.command {
                    Command::DropIndex { index } => file.index(index),
                    _ => None,
                });
                for index in drops {
                    let is_known = whole.commands().iter().any(|it| *it == index.creating());
                    assert!(
                        is_known || whole.table(index.table).is_none(),
                        "seed {seed}: {index:?}"
                    );
                }
                check_upgrade(&file, &whole, &format!("seed {seed}"));
            }
            Relation::Same => check_upgrade(&file, &whole, &format!("seed {seed}")),
            Relation::Different(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    assert!(newer > 100 && upgraded > 100, "{newer} newer, {upgraded} upgraded");
}

fn check_upgrade(file: &Schema, program: &Schema, what: &str) {
    let mut upgraded = file.clone();
    let customs = |schema: &Schema| {
        schema.commands().iter().filter(|c| matches!(c, Command::Custom { .. })).count()
    };
    match compare(file, program) {
        Relation::Same => assert_eq!(first_difference(file, program), None, "{what}"),
        Relation::Upgrade(plan) => {
            assert!(first_difference(file, program).is_some(), "{what}");
            let mut next = customs(file);
            for step in plan.steps() {
                assert_eq!(upgraded.command_text(&step.command), step.text, "{what}");
                if matches!(step.command, Command::Custom { .. }) {
                    assert_eq!(step.custom, Some(next), "{what}");
                    next += 1;
                }
                upgraded.apply(step.command.clone()).unwrap();
            }
            assert_eq!(next, customs(program), "{what}");
        }
        other => panic!("{what}: {other:?}"),
    }
    assert_eq!(ordered(&upgraded), ordered(program), "{what}");
    assert_eq!(indexes(&upgraded), indexes(program), "{what}");
    assert_eq!(upgraded.tables(), program.tables(), "{what}");
    assert_eq!(compare(&upgraded, program), Relation::Same, "{what}");
    if ordered(file).len() < ordered(program).len() {
        assert!(matches!(compare(program, file), Relation::Newer(_)), "{what}");
    }
}
