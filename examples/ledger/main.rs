//! A double-entry ledger: each transfer sums to zero, and the books can be read as they were at any time.
//!
//! `cargo run --release --example ledger` makes books of version 1, upgrades them, and shows a statement.

#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

mod books;
#[cfg(test)]
mod tests;

use std::path::Path;

use annals::typed::Viewed;
use annals::{Date, Timestamp};

use books::Ledger;

annals::schema!(mod version1 = "ledger/version1.schema");
annals::schema!(mod db = "ledger/ledger.schema");

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("ledger.annals");
    write_version_1(&path)?;

    let ledger = Ledger::open(&path)?;
    let account =
        |name| Ok::<_, annals::Error>(ledger.now().account().by_name().require(name)?.id());
    let (bank, sales) = (account("bank")?, account("sales")?);
    let rent = ledger.open_account("rent")?;
    let pay = |day: &str, memo, amount: &str, from, to| -> Result<_> {
        let entries = [(to, amount.parse()?), (from, format!("-{amount}").parse()?)];
        Ok(ledger.transfer(day.parse()?, memo, &entries)?)
    };
    pay("2026-02-03", "rent of February", "900.00", bank, rent)?;
    let twice = pay("2026-02-03", "rent of February", "900.00", bank, rent)?;
    pay("2026-02-20", "a cupboard", "640.50", sales, bank)?;
    let audited = ledger.now().txid();
    ledger.cancel(twice, "it was booked twice")?;

    let uneven = [(bank, "10.00".parse()?), (sales, "-9.99".parse()?)];
    if let Err(error) = ledger.transfer("2026-03-01".parse()?, "a stool", &uneven) {
        println!("refused: {error}\n");
    }
    let february = "2026-02-28".parse()?;
    println!("the bank at the end of February, as we know it now:");
    print(&ledger.now(), bank, february)?;
    println!("\nas the auditor saw it:");
    let audited = ledger.at(audited)?;
    print(&audited, bank, february)?;

    println!("\nall accounts:");
    let now = ledger.now();
    for account in now.account().by_name() {
        let account = account?;
        let balance = books::balance(&now, account.id(), february)?;
        println!("  {:<12} {balance:>9}", account.name());
    }
    Ok(ledger.close()?)
}

fn print(books: &db::Tables<impl Viewed>, account: db::account::Id, until: Date) -> Result<()> {
    for line in books::statement(books, account, until)? {
        println!("  {}  {:<18} {:>9} {:>9}", line.day, line.memo, line.amount, line.balance);
    }
    Ok(())
}

/// Makes books with the schema of the first release, as an old file has it.
fn write_version_1(path: &Path) -> Result<()> {
    use version1::{account, entry, transfer};

    let db = version1::Database::open(path)?;
    db.write(|tx| {
        tx.set_time("2026-01-31T18:00:00Z".parse::<Timestamp>()?);
        let bank = tx.insert(account::New { name: "bank" })?;
        let sales = tx.insert(account::New { name: "sales" })?;
        for (day, text, amount) in
            [("2026-01-09", "two chairs", "180.00"), ("2026-01-30", "an oak table", "1200.00")]
        {
            let transfer = tx.insert(transfer::New { day: day.parse()?, text })?;
            let minus = format!("-{amount}");
            for (account, amount) in [(bank, amount), (sales, &*minus)] {
                let amount = amount.parse()?;
                tx.insert(entry::New { transfer, account, amount })?;
            }
        }
        Ok(())
    })?;
    Ok(db.close()?)
}
