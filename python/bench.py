"""Measures the package beside its peers: times, and ratios to a copy of the same bytes in memory.

bench.py [ROWS], with polars, pandas and duckdb installed; ten million rows if it isn't said.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import annals
import duckdb
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


def imported(module: str) -> float:
    code = f"import time; a = time.perf_counter(); import {module}; print(time.perf_counter() - a)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


def inserts() -> None:
    rows = [(i, str(i)) for i in range(100_000)]
    with tempfile.TemporaryDirectory() as folder:
        with annals.open(os.path.join(folder, "a"), schema=SCHEMA) as db:

            def one_by_one() -> None:
                with db.write() as tx:
                    insert = tx.t.insert
                    for n, s in rows:
                        insert(n=n, s=s)

            took = timed(one_by_one)
        peer = sqlite3.connect(os.path.join(folder, "b"))
        peer.execute("create table t(n integer, s text)")
        peer.commit()

        def many() -> None:
            peer.executemany("insert into t values(?, ?)", rows)
            peer.commit()

        other = timed(many)
        peer.close()
    print(f"100,000 inserts in one durable transaction: {took:.3f} s; sqlite3 executemany: {other:.3f} s ({took / other:.1f}x)")


def frames() -> None:
    frame = pl.DataFrame({"n": range(ROWS), "s": [f"value {i}" for i in range(ROWS)]})
    db = annals.in_memory(SCHEMA)
    with db.write() as tx:
        print(f"{ROWS:,} rows from polars: {timed(lambda: tx.t.insert_all(frame)):.3f} s")
    now = db.read().t
    took = timed(lambda: pl.DataFrame(now), 5)
    result = pl.DataFrame(now)
    assert result["n"].sum() == ROWS * (ROWS - 1) // 2 and result["s"][-1] == f"value {ROWS - 1}"
    size, chunks = result.estimated_size(), result.n_chunks()
    del result
    block = bytearray(size)
    copy = timed(lambda: bytes(block), 5)
    del block
    print(f"to polars: {took:.3f} s, {chunks} chunks, {size:,} bytes; a copy of them in memory: {copy:.3f} s ({took / copy:.2f}x)")
    peer = duckdb.connect()
    peer.execute("create table t as select n, s from frame")
    other = timed(lambda: peer.sql("select n, s from t").pl(), 3)
    print(f"duckdb to polars: {other:.3f} s ({other / took:.1f} times ours)")
    peer.close()
    lite = sqlite3.connect(":memory:")
    lite.execute("create table t(n integer, s text)")
    lite.executemany("insert into t values(?, ?)", frame.iter_rows())
    other = timed(lambda: pd.read_sql_query("select n, s from t", lite))
    print(f"sqlite3 to pandas: {other:.3f} s ({other / took:.1f} times ours)")
    db.close()


print(f"import annals: {imported('annals') * 1000:.1f} ms; import sqlite3: {imported('sqlite3') * 1000:.1f} ms")
inserts()
frames()
