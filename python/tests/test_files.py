"""Parquet and Arrow of the program `annals`, beside those of DuckDB and pyarrow: the same values."""

import os
import subprocess
from datetime import date, datetime, timezone
from decimal import Decimal

import annals
import pytest

duckdb = pytest.importorskip("duckdb")
ipc = pytest.importorskip("pyarrow.ipc")
pq = pytest.importorskip("pyarrow.parquet")

FIELDS = ["n int64", "s string", "price decimal(2) null", "ratio float32 null", "ok bool null", "at timestamp null",
          "day date null", "raw bytes null"]
SCHEMA = "create_table t\n" + "".join(f"add_field t {field}\n" for field in FIELDS)
NAMES = [field.split()[0] for field in FIELDS]
MOMENT = datetime(2024, 2, 29, 1, 2, 3, 4, timezone.utc)
ROWS = [(-5, "é", Decimal("-12.50"), 0.5, True, MOMENT, date(1969, 1, 1), b"\0"), (7, "", *[None] * 6)]


def create(path):
    with annals.open(path, schema=SCHEMA) as db, db.write() as tx:
        tx.t.insert_all(dict(zip(NAMES, row)) for row in ROWS)


def run(*arguments):
    program = os.environ.get("ANNALS_PROGRAM")
    if program is None:
        pytest.skip("ANNALS_PROGRAM isn't set: it is the program annals")
    subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE)


def in_duckdb(path):
    """Returns the rows of a Parquet file as DuckDB reads them; it shows times in the zone of the session."""
    duckdb.sql("SET TimeZone = 'UTC'")
    rows = duckdb.sql(f"SELECT * REPLACE (CAST(\"at\" AS TIMESTAMP) AS \"at\") FROM read_parquet('{path}')").fetchall()
    utc = [(value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value for value in row) for row in rows]
    return [tuple(row) for row in utc]


def test_answers_as_files_are_read_by_duckdb_and_pyarrow(tmp_path):
    path = tmp_path / "a.annals"
    create(path)
    query = "SELECT n, s, price, ratio, ok, at, day, raw, n * 2 AS twice FROM t ORDER BY id"
    for kind in ["parquet", "arrow"]:
        run("sql", path, query, "--format", kind, "-o", tmp_path / kind)
    expected = [(*row, row[0] * 2) for row in ROWS]
    tables = [pq.read_table(tmp_path / "parquet"), ipc.open_stream(tmp_path / "arrow").read_all()]
    for table in tables:
        assert [tuple(row.values()) for row in table.to_pylist()] == expected
    assert in_duckdb(tmp_path / "parquet") == expected


def test_an_export_is_read_by_duckdb_and_pyarrow(tmp_path):
    create(tmp_path / "a.annals")
    run("export", "parquet", tmp_path / "a.annals", tmp_path / "out")
    expected = [(id, *row) for id, row in enumerate(ROWS)]
    table = pq.read_table(tmp_path / "out/t.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == expected
    assert in_duckdb(tmp_path / "out/t.parquet") == expected


@pytest.mark.parametrize("writer", ["duckdb", "pyarrow"])
def test_what_they_write_is_imported(tmp_path, writer):
    create(tmp_path / "a.annals")
    run("export", "parquet", tmp_path / "a.annals", tmp_path / "out")
    file = tmp_path / "out/t.parquet"
    if writer == "duckdb":
        duckdb.sql(f"COPY (SELECT * FROM read_parquet('{file}')) TO '{tmp_path / 't.parquet'}'")
    else:
        pq.write_table(pq.read_table(file), tmp_path / "t.parquet", compression="snappy")
    run("import", "parquet", tmp_path / "b.annals", "--schema", tmp_path / "out/schema.annals",
        f"t={tmp_path / 't.parquet'}")
    with annals.open(tmp_path / "a.annals") as first, annals.open(tmp_path / "b.annals") as second:
        assert list(first.t) == list(second.t) and len(second.t) == 2
