"""Measures the package beside its peers: times and memory, also as ratios to a copy of the same bytes in memory.

bench.py [ROWS], with polars, pandas, duckdb and lancedb installed; ten million rows if it isn't said.
"""

import gc
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import annals
import duckdb
import lancedb
import pandas as pd
import polars as pl

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
SCHEMA = "create_table t\nadd_field t n int64\nadd_field t s string\n"


def timed(work: Callable[[], object], times: int = 1) -> float:
    """Returns the seconds of the fastest run; what it made is dropped outside of them."""
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        made = work()
        best = min(best, time.perf_counter() - begin)
        del made
    return best


def resident() -> int:
    """Returns the bytes of memory that the process has in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def imported(module: str) -> float:
    code = f"import time; a = time.perf_counter(); import {module}; print(time.perf_counter() - a)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def inserts() -> None:
    rows = [(i, str(i)) for i in range(100_000)]
    dicts = [{"n": n, "s": s} for n, s in rows]
    with tempfile.TemporaryDirectory() as folder:
        with annals.open(os.path.join(folder, "a"), schema=SCHEMA) as db:

            def one_by_one() -> None:
                with db.write() as tx:
                    insert = tx.t.insert
                    for n, s in rows:
                        insert(n=n, s=s)

            def all_at_once() -> None:
                with db.write() as tx:
                    tx.t.insert_all(dicts)

            single, together = timed(one_by_one, 5), timed(all_at_once, 5)
        peer = sqlite3.connect(os.path.join(folder, "b"))
        peer.execute("pragma journal_mode = wal")
        peer.execute("pragma synchronous = full")
        peer.execute("create table t(n integer, s text)")
        peer.commit()

        def many() -> None:
            peer.executemany("insert into t values(?, ?)", rows)
            peer.commit()

        def each() -> None:
            execute = peer.execute
            for row in rows:
                execute("insert into t values(?, ?)", row)
            peer.commit()

        theirs, singly = timed(many, 5), timed(each, 5)
        peer.close()
    print("100,000 rows in one durable transaction, ms:")
    print(f"  insert() for each: {single * 1000:.0f}; insert_all() of dicts: {together * 1000:.0f}")
    print(f"  sqlite3 execute() for each: {singly * 1000:.0f}; executemany(): {theirs * 1000:.0f}")


def frames() -> None:
    frame = pl.DataFrame({"n": range(ROWS), "s": [f"value {i}" for i in range(ROWS)]})
    db = annals.in_memory(SCHEMA)
    with db.write() as tx:
        print(f"{ROWS:,} rows from polars, s: {timed(lambda: tx.t.insert_all(frame)):.2f}")
    now = db.read().t
    # First of all, since memory that was freed may be used again.
    del frame
    gc.collect()
    before = resident()
    result = pl.DataFrame(now)
    grown = resident() - before
    assert result["n"].sum() == ROWS * (ROWS - 1) // 2 and result["s"][-1] == f"value {ROWS - 1}"
    size, chunks = result.estimated_size(), result.n_chunks()
    frame = result.select("n", "s")
    took = timed(lambda: pl.DataFrame(now), 5)
    block = bytes(bytearray(size))
    copy = timed(lambda: bytearray(block), 5)
    del block
    print(f"to polars, s: {took:.3f}, in {chunks:,} chunks, {size / 1e6:.0f} MB; a copy of them in memory {copy:.3f} "
          f"({took / copy:.2f} times); memory grew by {grown / 1e6:.0f} MB ({grown / size:.2f} times)")
    peer = duckdb.connect()
    peer.execute("create table t as select n, s from frame")
    print(f"DuckDB to polars: {timed(lambda: peer.sql('select n, s from t').pl(), 3):.3f}")
    peer.close()
    with tempfile.TemporaryDirectory() as folder:
        lance = lancedb.connect(Path(folder)).create_table("t", frame.to_arrow())
        print(f"lancedb to polars: {timed(lambda: pl.from_arrow(lance.to_arrow()), 3):.3f}")
    lite = sqlite3.connect(":memory:")
    lite.execute("create table t(n integer, s text)")
    lite.executemany("insert into t values(?, ?)", frame.iter_rows())
    print(f"sqlite3 to pandas: {timed(lambda: pd.read_sql_query('select n, s from t', lite)):.3f}")
    db.close()


print(f"import annals, ms: {imported('annals') * 1000:.1f}; import sqlite3: {imported('sqlite3') * 1000:.1f}")
inserts()
frames()
