//! `annals check`: finds damage.

use std::path::{Path, PathBuf};

use annals::journal::Survey;
use annals::store::Dangling;
use annals::{Error, ErrorKind, Result, Snapshot, View};
use annals_tools::ImageCheck;
use clap::Args;

use crate::commands::{info, info_json};
use crate::output::{Output, count};
use crate::remote::{self, Access};
use crate::{Outcome, hints, progress};

/// Look for damage
///
/// Verifies every frame of the journal, and decodes every event. Prints `ok: ..` and ends with status 0, or the first
/// damage, with its position and the affected transactions, and status 2. A line `note: ..` reports harmless facts: bytes
/// after the last commit, where only zeros should be; an index with a collation that this program doesn't have.
///
/// Status 3 is neither: every frame verifies, but a commit doesn't apply. A newer version wrote it, or a
/// program had a bug. The error names its event, and says what to do; until then the file can only be read,
/// as of the commit before.
///
/// If there is an image, the page file beside the journal from which opening starts, all of it is verified too, and
/// that it belongs to this journal. Damage of the image loses nothing: it holds only what the journal does. The history
/// index in it is verified, too.
///
/// Without an image, or with --replay, the history is replayed, and the resulting tables and indexes are checked. This
/// needs memory for all of them. With --replay they are also compared with the state of the image: schema, rows with
/// all values, next ids, order of indexes, blobs, and each entry of the history index.
///
/// Of an archive (file:///FOLDER, s3://BUCKET/PATH) every byte of every object is compared. --drill also restores it into a
/// temporary folder. --race shows whether the store keeps two uploaders apart: it creates 200 objects, each by 8 at once.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  annals check people.annals && echo sound
  annals check people.annals --replay")]
pub(crate) struct Arguments {
    /// The database: a file, the URL of one on a server, or of a file on a web server (https://HOST/NAME.annals)
    file: PathBuf,
    /// Compare the state of the image with that of a replay of the journal
    #[arg(long)]
    replay: bool,
    /// Restore an archive into nothing, and compare
    #[arg(long, conflicts_with = "race")]
    drill: bool,
    /// Show whether the store of an archive creates an object once only
    #[arg(long)]
    race: bool,
    #[command(flatten)]
    access: Access,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome> {
    #[cfg(feature = "net")]
    if let Some(url) = remote::archive(&arguments.file) {
        let asked = super::check_archive::Asked { race: arguments.race, drill: arguments.drill };
        return super::check_archive::run(url, asked);
    }
    if arguments.drill || arguments.race {
        let message = "--drill and --race are about an archive: name its URL, as s3://BUCKET/PATH";
        return Err(Error::invalid(message));
    }
    let file = &*arguments.access.fetch(&arguments.file)?;
    match check(file, arguments.replay) {
        Ok(summary) => {
            let mut output = Output::new();
            output.line(&summary)?;
            output.flush()?;
            Ok(Outcome::Done)
        }
        Err(error) if is_damage(&error) => {
            hints::tell(&error);
            Ok(Outcome::Damaged)
        }
        Err(error) if error.kind() == ErrorKind::Unapplied => {
            hints::tell(&error);
            Ok(Outcome::Unapplied)
        }
        Err(error) => Err(error),
    }
}

/// True if the file is damaged, rather than unreadable for another reason.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotAJournal)
}

/// Runs all checks; returns a summary.
fn check(path: &Path, replay: bool) -> Result<String> {
    let examination = match replay {
        true => annals_tools::examine(&progress::options(), path)?,
        false => annals_tools::verify(&progress::options(), path)?,
    };
    let inspection = &examination.inspection;
    let shown = path.display().to_string();
    let unapplied = examination.unapplied.as_ref().map(|unapplied| {
        let why = examination.problem.clone();
        Error::new(ErrorKind::Unapplied, why.unwrap_or_else(|| unapplied.explain(&shown)))
    });
    let problem = examination.problem.as_ref().filter(|_| unapplied.is_none());
    let damage = inspection.damage.as_ref().or(problem);
    if let Some(damage) = damage.or(examination.wrong_mark.as_ref()) {
        return Err(Error::corrupt(damage.clone()));
    }
    let snapshot = &examination.snapshot;
    if examination.is_replayed {
        snapshot.check().map_err(|error| error.within(path.display()))?;
    }
    if let Some(damage) = info_json::damaged_copy(inspection) {
        return Err(Error::corrupt(damage).within(path.display()));
    }
    if let Some(error) = unapplied {
        return Err(error);
    }
    let mut rows = 0;
    for table in snapshot.schema().tables() {
        rows += snapshot.table(table.number)?.len();
    }
    let mut summary = format!(
        "ok: {}, {}, {}, {}, {}",
        count(info::transactions(&examination), "transaction"),
        count(examination.events.unwrap_or_default(), "event"),
        count(snapshot.schema().tables().len(), "table"),
        count(rows, "row"),
        count(snapshot.schema().indexes().len(), "index"),
    );
    summary.extend(image(path, replay.then_some(snapshot))?);
    if inspection.image.is_some() {
        summary.extend(history(path, replay)?);
    }
    summary.extend(dangling(snapshot)?);
    summary.extend(unavailable(snapshot));
    summary.extend(torn_slots(inspection));
    summary.extend(unfinished(inspection));
    Ok(summary)
}

/// Reports files beside the journal that couldn't be checked, and that the journal is sound, if it still exists.
fn but_sound(path: &Path, error: Error, consequence: &str) -> Error {
    let shown = path.display();
    match path.try_exists() {
        Ok(false) => Error::new(
            ErrorKind::NotFound,
            format!(
                "{shown}: the file was removed or renamed while it was checked; check it again"
            ),
        ),
        _ => {
            let kind = error.kind();
            Error::new(kind, format!("{error}; the journal is sound, and {consequence}"))
        }
    }
}

/// Verifies the image, and compares its state with a replayed one, if one is given.
fn image(path: &Path, replayed: Option<&Snapshot>) -> Result<Option<String>> {
    let sound = |error| but_sound(path, error, "opening it doesn't need the image");
    let Some(found) = annals_tools::check_image(&progress::options(), path).map_err(sound)? else {
        let none = "\nnote: there is no image, so that nothing was compared with the replay";
        return Ok(replayed.map(|_| none.to_owned()));
    };
    let ImageCheck { root, txid, objects, bytes, .. } = found;
    let wrong = |problem: String| {
        let (image, file) = (&found.path, path.display());
        let problem = match problem.starts_with(image.as_str()) {
            true => problem,
            false => format!("{image}: {problem}"),
        };
        Error::corrupt(format!(
            "{problem}; nothing is lost, for the journal is sound and has all that the image has: delete \
             the image, and `annals backfill {file}` makes a new one"
        ))
    };
    if let Some(problem) = &found.problem {
        return Err(wrong(problem.clone()));
    }
    let (objects, bytes) = (count(objects, "object"), count(bytes, "byte"));
    let mut line =
        format!("\nimage: root {root} with transactions up to {txid}, {objects}, {bytes}");
    for slot in (0..2).filter(|slot| found.torn[*slot]) {
        line.push_str(&format!(
            "\nnote: a copy of root slot {slot} of the image doesn't verify, as after a backfill that was \
             interrupted; the next one writes it again"
        ));
    }
    let Some(replayed) = replayed else { return Ok(Some(line)) };
    let compared =
        annals_tools::compare_image(&progress::options(), path, replayed).map_err(|error| {
            if error.kind() == ErrorKind::Corrupt { wrong(error.to_string()) } else { sound(error) }
        })?;
    match compared.map(|compared| compared.difference) {
        Some(Some(what)) => {
            Err(wrong(format!("it and the replay of the journal differ in {what}")))
        }
        Some(None) => {
            line.push_str("\nreplay: it gives what the image and the journal behind it do");
            Ok(Some(line))
        }
        None => Ok(Some("\nnote: the image was removed meanwhile".to_owned())),
    }
}

/// Verifies the history index. If `deep`, also compares each entry with the journal.
fn history(path: &Path, deep: bool) -> Result<Option<String>> {
    let sound = |error| but_sound(path, error, "no answer depends on the history index");
    let reader = progress::options().open_read_only(path).map_err(sound)?;
    let Some(found) = annals_tools::check_history_index(&reader.read(), deep).map_err(sound)?
    else {
        return Ok(None);
    };
    if let Some(problem) = found.problem {
        return Err(Error::corrupt(format!(
            "{problem}; delete the image, and `annals backfill {}` makes a new one: the journal is intact",
            path.display()
        )));
    }
    let txid = found.inspection.txid.unwrap_or(annals::Txid(0));
    let compared = if deep { ", which the journal has, too" } else { "" };
    let entries = count(found.inspection.entries, "entry");
    Ok(Some(format!("\nhistory index: transactions up to {txid}, {entries}{compared}")))
}

/// Reports dangling references that aren't enforced.
fn dangling(view: &View) -> Result<Vec<String>> {
    let note = |dangling: Dangling| {
        let table = view.schema().table(dangling.table)?;
        let (name, field) = (&table.name, &table.field(dangling.field)?.name);
        let references = count(dangling.count, "reference");
        Some(format!("\nnote: {references} of `{name}` in the field `{field}` to no row"))
    };
    Ok(view.dangling_references()?.into_iter().filter_map(note).collect())
}

/// Reports indexes that this program can't sort.
fn unavailable(view: &View) -> Vec<String> {
    let note = |(_, reason)| format!("\nnote: an index isn't checked: {reason}");
    view.unavailable_indexes().map(note).collect()
}

/// Reports slots whose copies differ, or don't verify. One copy that verifies is enough, so no data is lost.
fn torn_slots(survey: &Survey) -> Vec<String> {
    info::torn_slots(survey)
        .into_iter()
        .map(|torn| {
            format!(
                "\nnote: {torn}, as after a write that was interrupted; the other copies say all that is \
                 needed, and opening the file for writing repairs it"
            )
        })
        .collect()
}

/// Reports bytes after the last commit, where only zeros should be.
fn unfinished(survey: &Survey) -> Vec<String> {
    if !survey.has_tail() {
        return Vec::new();
    }
    let why = match survey.holder() {
        Some(pid) if survey.holder_lives() => {
            format!("process {pid} may be writing it; if it isn't, opening the file for writing")
        }
        _ => "opening the file for writing".to_owned(),
    };
    let (txid, position) = (survey.end.txid, survey.end.position);
    let tail = info::tail(survey).join("; ");
    vec![format!(
        "\nnote: behind the last commit, {txid}, which ends at position {position}, not only zeros \
         follow: {tail}. It was never known to be durable; {why} cuts it off"
    )]
}
