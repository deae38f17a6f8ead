"""A program that mypy checks strictly."""

from typing import Any

import annals
from annals import typed


def names(db: annals.Database) -> list[str]:
    with db.write(comment="typed") as tx:
        lille: int = tx.city.insert(name="Lille")
        tx.city.update(lille, name="Lyon")
    found: list[str] = [row.name for row in db.read().city]
    for version in db.history("city", lille):
        if version.new is not None and version.kind == "update":
            found.append(version.new["name"])
    return found


def refused(error: annals.Error) -> bool:
    return error.kind == "unique"


def described(db: annals.Database, snapshot: annals.Snapshot, tx: annals.Transaction, index: annals.Index) -> object:
    """The protocols of `annals.typed` are what the package has."""
    of_database: typed.Database[str, annals.Snapshot, annals.Transaction] = db
    of_snapshot: typed.Snapshot = snapshot
    of_transaction: typed.Transaction = tx
    of_index: typed.Index[annals.Row] = index
    return of_database, of_snapshot, of_transaction, of_index


def described_tables(
    table: annals.Table, writable: annals.WritableTable, row: annals.Row, rows: annals.Rows
) -> object:
    of_table: typed.Table[annals.Row] = table
    of_writable: typed.WritableTable[annals.Row, dict[str, Any], str] = writable
    of_row: typed.Row[str] = row
    of_rows: typed.Rows[annals.Row] = rows
    return of_table, of_writable, of_row, of_rows
