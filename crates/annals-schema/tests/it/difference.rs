//! Differences between a file's schema and a program's, and what is done about them.

use annals_schema::{
    COMMANDS, Command, Evolution, Newer, Plan, Relation, Schema, compare, first_difference, parse,
};

const FILE: &str = "create_table city\nadd_field city name string\ncreate_index i city name\n";

fn schema(text: &str) -> Schema {
    parse(text).unwrap().schema
}

/// Returns what is said of the difference between `FILE` and a program.
fn difference(program: &str) -> Option<String> {
    first_difference(&schema(FILE), &schema(program)).map(|difference| difference.to_string())
}

fn plan(file: &str, program: &str) -> Plan {
    match compare(&schema(file), &schema(program)) {
        Relation::Upgrade(plan) => plan,
        other => panic!("{other:?}"),
    }
}

fn newer(file: &str, program: &str) -> Newer {
    match compare(&schema(file), &schema(program)) {
        Relation::Newer(newer) => newer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_but_for_the_order_of_indexes() {
    assert_eq!(difference(FILE), None);
    let file = "create_table t\nadd_field t a int8\ncreate_index i t a\nadd_field t b int8\n\
        create_index j t b\nset_single_row t true\nset_single_row t false";
    let program = "create_table t\nadd_field t a int8\nadd_field t b int8\ncreate_index j t b\n\
        create_index old t b\ndrop_index old\ncreate_index i t a";
    assert_eq!(first_difference(&schema(file), &schema(program)), None);
    assert_eq!(compare(&schema(file), &schema(program)), Relation::Same);
}

#[test]
fn the_first_line_that_differs_is_shown() {
    let program = "create_table city\nadd_field city name bytes\ncreate_index i city name\n";
    let text = "the schemas differ in command 2 of tables and fields\n\
         the file has:    add_field city name string\n\
         the program has: add_field city name bytes";
    assert_eq!(difference(program).unwrap(), text);
    match compare(&schema(FILE), &schema(program)) {
        Relation::Different(difference) => assert_eq!(difference.to_string(), text),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        difference("create_table city").unwrap(),
        "the schemas differ in command 2 of tables and fields\n\
         the file has:    add_field city name string\n\
         the program has: nothing more"
    );
    assert!(
        difference(&format!("{FILE}create_table more"))
            .unwrap()
            .ends_with("the file has:    nothing more\nthe program has: create_table more")
    );
}

#[test]
fn indexes_differ_by_name_and_content() {
    let tables = "create_table city\nadd_field city name string\n";
    assert!(difference(tables).unwrap().ends_with(
        "in an index\nthe file has:    create_index i city name\n\
             the program has: no such index"
    ));
    assert!(difference(&format!("{tables}create_unique_index i city name")).unwrap().ends_with(
        "in an index\nthe file has:    create_index i city name\n\
             the program has: create_unique_index i city name"
    ));
    assert!(difference(&format!("{FILE}set_single_row city true")).unwrap().ends_with(
        "in a single row\nthe file has:    set_single_row city false\n\
             the program has: set_single_row city true"
    ));
    assert!(difference(&format!("{FILE}no_history_index city")).unwrap().ends_with(
        "in the history index\nthe file has:    history_index city\n\
             the program has: no_history_index city"
    ));
}

#[test]
fn the_history_index_is_compared_by_its_tables() {
    let more = format!("{FILE}no_history_index city\nhistory_index city\n");
    assert_eq!(difference(&more), None);
    let left_out = format!("{FILE}no_history_index city\n");
    let leave = plan(FILE, &left_out);
    assert!(leave.adds_nothing());
    assert_eq!(
        leave.to_string(),
        "no_history_index city  # histories of its rows are found by reading the whole journal"
    );
    assert_eq!(
        plan(&left_out, &more).to_string(),
        "history_index city  # the next backfill reads the whole journal for it"
    );
}

#[test]
fn a_custom_function_of_another_name_is_a_difference() {
    let text = "create_table t\ncustom a\nadd_field t x int8";
    let other = text.replace("custom a", "custom b");
    assert!(matches!(compare(&schema(text), &schema(&other)), Relation::Different(_)));
}

#[test]
fn a_plan_shows_each_line_and_what_it_does() {
    let file = "create_table person\nadd_field person name string\nadd_field person nick string\n\
        create_table old\nadd_field old x int8\ncreate_index by_x old x\n\
        create_index by_name person name\n";
    let program = "create_table person\nadd_field person name string\nadd_field person nick \
        string\ncreate_table old\nadd_field old x int8\ncreate_index by_name person name\n\
        drop_index by_name\ncreate_table city\ndrop_table old\nadd_field person home references city\n\
        add_field person born int16\nadd_field person mood string default \"good\"\n\
        rename_field person name full_name\ndrop_field person nick\ncustom find_homes\n\
        rename_table person people\ncreate_table settings\nset_single_row settings true\n\
        create_unique_index by_name people full_name,born\ncreate_index by_mood people mood\n";
    let plan = plan(file, program);
    assert_eq!(plan.customs(), 1);
    assert_eq!(
        plan.to_string(),
        "\
drop_index by_x                                    # the rows stay
drop_index by_name                                 # the rows stay
create_table city                                  # new and empty
drop_table old                                     # its rows are gone from the present, and stay in the history
add_field person home references city              # rows that are there read null; none is rewritten
add_field person born int16                        # rows that are there read 0; none is rewritten
add_field person mood string default \"good\"        # rows that are there read \"good\"; none is rewritten
rename_field person name full_name                 # only the name changes
drop_field person nick                             # its values are gone from the present, and stay in the history
custom find_homes                                  # runs the program's function
rename_table person people                         # only the name changes
create_table settings                              # new and empty
set_single_row settings true                       # adds the row if there is none; fails if there are several
create_unique_index by_name people full_name,born  # sorts the rows; fails if two have the same key
create_index by_mood people mood                   # sorts the rows"
    );
}

#[test]
fn custom_functions_are_numbered_among_all_of_the_programs() {
    let file = "create_table t\ncustom a\n";
    let program = format!("{file}custom b\nadd_field t x int8\ncustom a\n");
    let customs = |file| {
        let plan = plan(file, &program);
        plan.steps().iter().filter_map(|step| step.custom).collect::<Vec<_>>()
    };
    assert_eq!(customs(file), [1, 2]);
    assert_eq!(customs(""), [0, 1, 2]);
}

#[test]
fn a_newer_file_tells_what_is_new_and_what_is_gone() {
    let more = newer(&format!("{FILE}rename_table city town\nadd_field town more int8\n"), FILE);
    assert_eq!(more.lines, ["rename_table city town", "add_field town more int8"]);
    assert_eq!(more.missing, [""; 0]);
    let file = "create_table city\nadd_field city name string\nadd_field city size int8\n\
        create_table person\nset_single_row person true\n";
    let program = format!("{file}create_index i city name\ncreate_index j city size\n");
    let less = newer(
        &format!(
            "{file}rename_table city town\ndrop_field town size\ndrop_table person\n\
             create_unique_index i town name\n"
        ),
        &program,
    );
    assert_eq!(
        less.missing,
        [
            "field `size` of table `city` (by `drop_field town size`)",
            "table `person` (by `drop_table person`)",
            "index `create_index i city name`",
            "index `create_index j city size`",
        ]
    );
    let single = "create_table s\nset_single_row s true";
    let less = newer("create_table s\nset_single_row s false\ncreate_table t", single);
    assert_eq!(less.missing, ["the single row of table `s` (by `set_single_row s false`)"]);
}

#[test]
fn an_index_is_dropped_by_a_line_alone() {
    let tables = "create_table city\nadd_field city name string\n";
    let unknown = newer(FILE, tables);
    assert_eq!(unknown, Newer { lines: vec!["create_index i city name".into()], missing: vec![] });
    let dropped = format!("{FILE}drop_index i\n");
    assert!(plan(FILE, &dropped).adds_nothing());
    assert!(!plan(tables, FILE).adds_nothing());
    // Dropped by the newer program, and so by this file.
    let less = newer(&dropped, FILE);
    assert_eq!(less.lines, ["drop_index i"]);
    assert_eq!(less.missing, ["index `create_index i city name` (by `drop_index i`)"]);
    // Another definition is another index.
    let unique = format!("{tables}create_unique_index i city name\n");
    assert_eq!(newer(FILE, &unique).missing, ["index `create_unique_index i city name`"]);
    let again = format!("{dropped}create_unique_index i city name\n");
    assert!(!plan(FILE, &again).adds_nothing());
    // A table goes with its indexes.
    assert_eq!(plan(FILE, &format!("{tables}drop_table city\n")).steps().len(), 2);
}

/// Made, dropped, and made again: each program knows the files of those before it, and none of those after it.
#[test]
fn what_was_made_again_is_newer_than_its_drop() {
    for (before, makes, drops) in [
        ("add_field t a int8\n", "create_unique_index i t a\n", "drop_index i\n"),
        ("", "set_single_row t true\n", "set_single_row t false\n"),
        ("", "no_history_index t\n", "history_index t\n"),
    ] {
        let versions: Vec<_> = (0..6)
            .map(|version| {
                let lines = [makes, drops].into_iter().cycle().take(version);
                format!("create_table t\n{before}{}", lines.collect::<String>())
            })
            .collect();
        for (made, program) in versions.iter().enumerate() {
            // A new file of that version, and one that each version before has opened.
            let fresh = upgraded("", program);
            let old = versions[..=made].iter().fold(String::new(), |file, it| upgraded(&file, it));
            for file in [fresh, old] {
                for (opened, other) in versions.iter().enumerate() {
                    let relation = compare(&schema(&file), &schema(other));
                    let is_same = opened % 2 == made % 2;
                    match relation {
                        Relation::Same => {
                            assert!(is_same || opened.max(made) == 0, "{file}{other}")
                        }
                        Relation::Upgrade(_) => assert!(opened > made, "{file}\n{other}"),
                        Relation::Newer(_) => assert!(opened < made, "{file}\n{other}"),
                        Relation::Different(_) => panic!("{file}\n{other}"),
                    }
                    assert!(is_same || relation != Relation::Same, "{file}\n{other}");
                }
            }
        }
    }
}

/// Returns a file's schema after a program has opened it.
fn upgraded(file: &str, program: &str) -> String {
    let mut file = schema(file);
    if let Relation::Upgrade(plan) = compare(&file, &schema(program)) {
        plan.steps().iter().for_each(|step| file.apply(step.command.clone()).unwrap());
    }
    assert_eq!(compare(&file, &schema(program)), Relation::Same);
    file.to_text()
}

#[test]
fn each_command_makes_a_file_newer() {
    for evolution in &Evolution::ALL {
        let (older, newer_schema) = (evolution.older(), evolution.newer());
        assert!(!plan(&older, &newer_schema).steps().is_empty(), "{evolution:?}");
        assert_eq!(compare(&schema(&older), &schema(&older)), Relation::Same);
        let newer = newer(&newer_schema, &older);
        assert_eq!(newer.lines, [evolution.line]);
        assert_eq!(newer.missing.is_empty(), evolution.is_readable, "{evolution:?} {newer:?}");
    }
    // None is left out: a new command doesn't compile here, and the parser's list has each.
    let words = |command: &Command| match command {
        Command::CreateTable { .. } => "create_table",
        Command::AddField { .. } => "add_field",
        Command::CreateIndex { unique: false, .. } => "create_index",
        Command::CreateIndex { unique: true, .. } => "create_unique_index",
        Command::DropTable { .. } => "drop_table",
        Command::RenameTable { .. } => "rename_table",
        Command::DropField { .. } => "drop_field",
        Command::RenameField { .. } => "rename_field",
        Command::AddVariant { .. } => "add_variant",
        Command::RenameVariant { .. } => "rename_variant",
        Command::DropVariant { .. } => "drop_variant",
        Command::DropIndex { .. } => "drop_index",
        Command::SetSingleRow { .. } => "set_single_row",
        Command::SetHistoryIndex { indexed: false, .. } => "no_history_index",
        Command::SetHistoryIndex { indexed: true, .. } => "history_index",
        Command::Custom { .. } => "custom",
    };
    let lasts: Vec<_> = (Evolution::ALL.iter())
        .map(|it| words(schema(&it.newer()).commands().iter().last().unwrap()))
        .collect();
    for command in COMMANDS.iter().filter(|command| **command != "namespace") {
        assert!(lasts.contains(command), "{command} has no case");
    }
}

/// A file of joedb holds no defaults; its rows have their values.
#[test]
fn a_field_without_default_stands_for_one_with() {
    let (file, program) =
        ("create_table t\nadd_field t a int8", "create_table t\nadd_field t a int8 = 5");
    assert_eq!(compare(&schema(file), &schema(program)), Relation::Same);
    assert_eq!(first_difference(&schema(file), &schema(program)), None);
    assert!(matches!(compare(&schema(program), &schema(file)), Relation::Different(_)));
    let other = "create_table t\nadd_field t a int8 = 6";
    assert!(matches!(compare(&schema(program), &schema(other)), Relation::Different(_)));
    let nullable = "create_table t\nadd_field t a int8 null = 5";
    assert!(matches!(compare(&schema(file), &schema(nullable)), Relation::Different(_)));
}
