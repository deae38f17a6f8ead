"""Measures the package beside its peers: ratios to a copy of the same bytes in memory, too."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable

import annals
import polars as pl

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def imported() -> float:
    code = "import time; a = time.perf_counter(); import annals; print(time.perf_counter() - a)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in runs)


print(f"import: {imported() * 1000:.1f} ms")
db = annals.in_memory("create_table t\nadd_field t n int64\nadd_field t s string\n")
with db.write() as tx:
    table = tx.t
    took = timed(lambda: [table.insert(n=i, s=str(i)) for i in range(100_000)])
    for id in table.ids():
        table.delete(id)
peer = sqlite3.connect(":memory:")
peer.execute("create table t(n, s)")
rows = [(i, str(i)) for i in range(100_000)]
print(f"100,000 inserts: {took:.3f} s; sqlite3 executemany: {timed(lambda: peer.executemany('insert into t values(?, ?)', rows)):.3f} s")
frame = pl.DataFrame({"n": range(ROWS), "s": [f"value {i}" for i in range(ROWS)]})
with db.write() as tx:
    print(f"{ROWS:,} rows from polars: {timed(lambda: tx.t.insert_all(frame)):.3f} s")
now = db.read().t
took = min(timed(lambda: pl.DataFrame(now)) for _ in range(3))
result = pl.DataFrame(now)
block = bytearray(result.estimated_size())
copy = min(timed(lambda: bytes(block)) for _ in range(3))
print(f"to polars: {took:.3f} s, {result.n_chunks()} chunks, {len(block):,} bytes; a copy of them: {copy:.3f} s ({took / copy:.1f}x)")
peer.execute("delete from t")
peer.executemany("insert into t values(?, ?)", frame.iter_rows())
print(f"sqlite3 to polars: {timed(lambda: pl.read_database('select n, s from t', peer)):.3f} s")
