"""Bugs of others, as tests of ours."""

import contextlib
import pathlib

import annals
import pytest

ROWS = 8_000
SCHEMA = """create_table t
add_field t n int64
add_field t s string
create_index t_by_n t n
"""
PARTS = 6


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("museum") / "a.annals"
    with annals.open(path, schema=SCHEMA) as db:
        for first in range(0, ROWS, ROWS // 4):
            with db.write() as tx:
                tx.t.insert_all(
                    {"n": -number, "s": f"a name that no cell has room for, of number {number}"}
                    for number in range(first, first + ROWS // 4)
                )
        with db.write() as tx:
            tx.t.delete(7)
    return path


@contextlib.contextmanager
def broken(path: pathlib.Path, part: int):
    """What is read of a part of the files isn't what was written."""
    files = [path, path.with_name(path.name + "-image")]
    kept = [file.read_bytes() for file in files]
    for file, bytes in zip(files, kept):
        begin = max(len(bytes) * part // PARTS, 1 << 16)
        with file.open("r+b") as storage:
            storage.seek(begin)
            storage.write(b"\xa5" * (len(bytes) * (part + 1) // PARTS - begin))
    try:
        yield
    finally:
        for file, bytes in zip(files, kept):
            with file.open("r+b") as storage:
                storage.write(bytes)


def values(rows):
    return [(row.id, row.n, row.s) for row in rows]


def frame(stream):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(stream).rows()


def fed(db):
    with db.subscribe(after=0) as feed:
        found = []
        while len(found) < 6 and (commit := feed.next(timeout=10)) is not None:
            found.append(commit)
        return found


DOORS = {
    "rows": lambda db: values(db.t),
    "slice": lambda db: values(db.t[5:]),
    "index": lambda db: values(db.t.by_n),
    "range": lambda db: values(db.t.by_n.range(first=-7_000, end=-3)),
    "past": lambda db: values(db.at(3).t),
    "as it was": lambda db: values(db.as_it_was(3).t.by_n),
    "sql": lambda db: list(db.sql("SELECT id, n, s FROM t ORDER BY s")),
    "sql of the past": lambda db: list(db.sql("SELECT count(*), sum(length(new_s)) FROM t_history")),
    "frame": lambda db: frame(db.t),
    "frame of an index": lambda db: frame(db.t.by_n.range()),
    "frame of changes": lambda db: frame(db.t.changes()),
    "diff": lambda db: db.diff(1, 6),
    "history": lambda db: [db.history("t", row) for row in range(0, ROWS, 1000)],
    "feed": fed,
}


@pytest.mark.parametrize("door", DOORS)
def test_redb_4_3_an_answer_is_whole_or_an_error(path, door):
    """An iterator went on after an error, as if there were no more rows.

    <https://github.com/cberner/redb/blob/master/CHANGELOG.md>, 4.3
    """
    ask, failed = DOORS[door], 0
    with annals.open(path, read_only=True) as db:
        whole = ask(db)
    for part in range(PARTS):
        with annals.open(path, read_only=True) as db:
            with broken(path, part):
                try:
                    found = ask(db)
                except Exception as error:
                    assert not isinstance(error, (AttributeError, TypeError)), error
                    failed += 1
                else:
                    assert found == whole, f"part {part}: {len(found)} of {len(whole)}"
            assert ask(db) == whole, f"part {part}: afterwards"
    assert failed > 0, "it was never read"


def test_redb_4_3_an_iterator_that_failed_does_not_end(path):
    with annals.open(path, read_only=True) as db:
        whole = values(db.t)
    failed = 0
    for part in range(PARTS):
        with annals.open(path, read_only=True) as db:
            rows, taken = iter(db.t), []
            with broken(path, part):
                try:
                    taken.extend(rows)
                except annals.errors.PageLost:
                    failed += 1
            if len(taken) < len(whole):
                # The page stays lost for its snapshot. The next one does without it.
                with pytest.raises(annals.errors.PageLost):
                    next(rows)
            assert values(taken) == whole[: len(taken)], part
            assert values(db.t) == whole, part
    assert failed > 0, "it was never read"
