"""Rows from hostile or careless sources: wholly stored as they are, or refused; and nobody between the parts of a call."""

import asyncio
import threading

import annals
import pytest

SCHEMA = """create_table t
add_field t name string null
add_field t f float64 null
add_field t f32 float32 null
create_unique_index t_by_name t name
"""


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as made:
        yield made


def names(rows):
    return [row.name for row in rows]


def test_a_key_with_null_is_no_others(db):
    with db.write() as tx:
        assert tx.t.upsert_all([{"name": None, "f": n} for n in (1, 2, 3)], "by_name") == 3
        one, other = (tx.t.upsert("by_name", name=None, f=n) for n in (4, 5))
        assert one != other
        assert tx.t.upsert("by_name", name="a", f=6) == tx.t.upsert("by_name", name="a", f=7)
    assert [row.f for row in db.t] == [1, 2, 3, 4, 5, 7]


def test_texts_that_are_not_utf8_are_refused():
    pa = pytest.importorskip("pyarrow")
    bad = pa.array([b"good", b"Li\xe8ge"])
    for ty in [pa.string(), pa.large_string(), pa.string_view()]:
        with annals.in_memory(SCHEMA) as db:
            column = bad.cast(pa.string(), safe=False).cast(ty, safe=False) if ty != pa.string() else bad.cast(ty, safe=False)
            with db.write() as tx:
                tx.t.insert(name="before")
                with pytest.raises(annals.Error):
                    tx.t.insert_all(pa.table({"name": column}))
            assert names(db.t) == ["before"]


def test_a_place_that_is_not_in_its_dictionary_is_refused(db):
    pa = pytest.importorskip("pyarrow")
    column = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), ["a"], safe=False)
    with db.write() as tx:
        tx.t.insert(name="before")
        with pytest.raises(annals.Error):
            tx.t.insert_all(pa.table({"name": column}))
    assert names(db.t) == ["before"]


@pytest.mark.parametrize("fails", [False, True])
def test_others_wait_while_rows_are_taken(db, fails):
    seen, other = [], None

    def insert():
        seen.append(tx.t.insert(name="other"))

    def rows():
        nonlocal other
        yield {"name": "a"}
        assert names(tx.t) == ["a"], "what makes the rows may read"
        for change in [lambda: tx.t.insert(name="x"), lambda: tx.t.insert_all([]), tx.commit, tx.rollback,
                       lambda: tx.t.delete(0), lambda: tx.comment("x"), lambda: tx.savepoint().__enter__()]:
            with pytest.raises(annals.errors.Invalid, match="taking rows"):
                change()
        other = threading.Thread(target=insert)
        other.start()
        yield {"name": "b"}
        yield {"name": "a" if fails else "c"}

    with db.write() as tx:
        if fails:
            with pytest.raises(annals.errors.Unique):
                tx.t.insert_all(rows())
        else:
            assert tx.t.insert_all(rows()) == 3
        other.join(20)
        assert len(seen) == 1
    assert names(db.t) == (["other"] if fails else ["a", "b", "c", "other"])


def test_whole_numbers_are_not_rounded(db):
    numpy = pytest.importorskip("numpy")
    with db.write() as tx:
        for kind, number in [(numpy.int64, 2**53 + 1), (numpy.int64, 2**62 + 1), (numpy.uint64, 2**64 - 1)]:
            with pytest.raises(annals.errors.Invalid, match="f"):
                tx.t.insert(f=kind(number))
        for number in [2**24 + 1, numpy.int32(2**24 + 1)]:
            with pytest.raises(annals.errors.Invalid, match="f32"):
                tx.t.insert(f32=number)
        tx.t.insert(f=numpy.int64(2**53), f32=numpy.int32(2**24))
        tx.t.insert(f=numpy.float64(0.1), f32=0.1)
    assert [row.f for row in db.t] == [2.0**53, 0.1]


def test_a_task_that_is_cancelled_loses_no_commit(db):
    async def follow():
        feed = db.subscribe()
        with pytest.raises((TimeoutError, asyncio.TimeoutError)):
            await asyncio.wait_for(feed.__anext__(), 0.05)
        wrote = []
        for number in range(4):
            with db.write() as tx:
                tx.t.insert(name=str(number))
            wrote.append(tx.txid)
            waiting = asyncio.ensure_future(feed.__anext__())
            await asyncio.sleep(0 if number % 2 else 0.3)
            if not waiting.done():
                waiting.cancel()
            else:
                wrote.remove(waiting.result().txid)
        got = [(await asyncio.wait_for(feed.__anext__(), 20)).txid for _ in wrote]
        assert got == wrote
        assert feed.next(0) is None

    asyncio.run(follow())


def test_handles_that_share_a_file_see_each_others_commits(tmp_path):
    path = tmp_path / "shared.annals"
    with annals.open(path, schema=SCHEMA, shared=True) as one, annals.open(path, shared=True) as other:
        for number in range(3):
            with one.write() as tx:
                tx.t.insert(name=str(number))
            now = tx.txid
            assert len(other.t) == len(other.read().t) == number + 1
            assert other.at(now).txid == now
            assert list(other.sql("SELECT count(*) FROM t")) == [(number + 1,)]
        with other.write() as tx:
            tx.t.insert(name="mine")
            assert len(other.t) == 3, "while a transaction is open nobody else writes"
        assert len(one.t) == 4


@pytest.mark.parametrize("kind", ["string", "large_string", "binary"])
def test_empty_parts_of_columns_are_taken(kind):
    pa = pytest.importorskip("pyarrow")
    values = ["first", "second"] if "string" in kind else [b"first", b"second"]
    column = pa.array(values, getattr(pa, kind)())
    table = pa.table({"x": pa.chunked_array([column.slice(1, 0), column, column.slice(2)])})
    name = "string" if "string" in kind else "bytes"
    db = annals.in_memory(f"create_table t\nadd_field t x {name}\n")
    with db.write() as tx:
        assert tx.t.insert_all(table) == 2
        assert tx.t.insert_all(table.slice(2)) == 0
    assert [row.x for row in db.read().t] == values
