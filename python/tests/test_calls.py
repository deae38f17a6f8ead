"""A call is done wholly or not at all."""

import threading

import annals
import pytest

SCHEMA = """create_table t
add_field t n int64
add_field t b int8 null
add_field t raw blob null
add_field t s string null
create_unique_index t_by_n t n
create_index t_by_s t s
"""


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as db:
        with db.write() as tx:
            tx.t.insert_all({"n": n, "b": n, "s": str(n)} for n in range(10))
        yield db


def rows(table):
    return [(row.id, row.n, row.b, row.raw, row.s) for row in table]


def failing():
    yield {"n": 21}
    yield {"n": 22, "raw": b"blob"}
    raise RuntimeError("of the program")


def frame(**columns):
    return pytest.importorskip("polars").DataFrame(columns)


CALLS = {
    "insert": lambda t: t.insert(n=20, raw=b"blob", b=999),
    "insert with an id in use": lambda t: t.insert(id=3, n=20, raw=b"blob"),
    "insert_all": lambda t: t.insert_all([{"n": 20}, {"n": 21, "raw": b"x"}, {"n": 22, "b": 999}]),
    "insert_all of what isn't a row": lambda t: t.insert_all([{"n": 20}, 5]),
    "insert_all of an unknown field": lambda t: t.insert_all([{"n": 20}, {"n": 21, "m": 1}]),
    "insert_all of a generator": lambda t: t.insert_all(failing()),
    "insert_all of a frame": lambda t: t.insert_all(frame(n=[20, 21], b=[1, 999])),
    "insert_all of a frame with ids": lambda t: t.insert_all(frame(id=[20, 3], n=[20, 21])),
    "update": lambda t: t.update(0, n=77, b=999),
    "update of nothing": lambda t: t.update(99, n=77),
    "update to null": lambda t: t.update(0, s="new", n=None),
    "update_all": lambda t: t.update_all([{"id": 0, "n": 77}, {"id": 1, "b": 5}, {"id": 99, "b": 6}]),
    "update_all without id": lambda t: t.update_all([{"id": 0, "n": 77}, {"b": 5}]),
    "update_all of a frame": lambda t: t.update_all(frame(id=[0, 99], b=[5, 6])),
    "upsert_all": lambda t: t.upsert_all([{"n": 5, "s": "new"}, {"n": 30}, {"n": 31, "b": 999}], "by_n"),
    "upsert_all without the key": lambda t: t.upsert_all([{"n": 5, "s": "new"}, {"b": 1}], "by_n"),
    "upsert_all of a frame": lambda t: t.upsert_all(frame(n=[5, 30], b=[1, 999]), "by_n"),
    "upsert by an index that isn't unique": lambda t: t.upsert("by_s", n=50, s="1"),
    "upsert of another id": lambda t: t.upsert("by_n", id=7, n=5, s="new"),
    "delete_all": lambda t: t.delete_all([0, 1, 99]),
    "delete_all of what isn't an id": lambda t: t.delete_all([0, "1"]),
    "delete_all of a frame": lambda t: t.delete_all(frame(id=[0, 99])),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_refused_call_leaves_nothing(db, call):
    before = rows(db.t)
    with db.write() as tx:
        tx.t.update(9, s="of before")
        inside = rows(tx.t)
        with pytest.raises((annals.Error, RuntimeError)):
            call(tx.t)
        assert rows(tx.t) == inside
        assert [row.id for row in tx.t.by_n] == list(range(10))
        # It can continue.
        tx.t.insert(n=1000)
    assert rows(db.t) == [*before[:9], (9, 9, 9, None, "of before"), (10, 1000, None, None, None)]
    assert [(change.table, change.id) for change in db.diff(db.read().txid - 1)] == [("t", 9), ("t", 10)]


def test_calls_that_change_many_rows(db):
    with db.write() as tx:
        assert tx.t.update_all([{"id": 0, "s": "a"}, {"id": 1, "b": None, "s": "b"}]) == 2
        assert tx.t.upsert_all([{"n": 2, "s": "c"}, {"n": 50, "s": "d"}], "by_n") == 2
        assert tx.t.upsert("id", id=60, n=60) == tx.t.upsert("id", id=60, n=61) == 60
        assert tx.t.upsert_all(frame(n=[3, 51], s=["e", "f"]), "by_n") == 2
        assert tx.t.update_all(frame(id=[4], s=["g"])) == 1
        assert tx.t.delete_all([5, tx.t[6]]) == 2
        assert tx.t.delete_all(tx.t.by_s.equal("7")) == 1
        assert tx.t.delete_all(frame(id=[8])) == 1
        del tx.t[9]
    assert [(row.id, row.n, row.b, row.s) for row in db.t] == [
        (0, 0, 0, "a"), (1, 1, None, "b"), (2, 2, 2, "c"), (3, 3, 3, "e"), (4, 4, 4, "g"), (10, 50, None, "d"),
        (60, 61, None, None), (61, 51, None, "f")]


def test_a_transaction_is_read_as_a_snapshot_is(db):
    with db.write() as tx:
        tx.t.insert(n=10, s="1")
        for table in [tx.t, tx["t"]]:
            assert table.name == "t" and len(table) == 11 and 10 in table and 99 not in table
            assert table.by_n[10].id == 10 and table.by_n.get(99) is None and 3 in table.by_n
            assert table.get(0).n == 0 and table.get(99) is None
            assert [row.id for row in table.by_s.equal("1")] == [1, 10]
            assert [row.n for row in table.range(8)] == [row.n for row in table[8:]] == [8, 9, 10]
            assert [row.n for row in table.by_n.range(first=2, end=4)] == [2, 3]
            assert table.ids() == tuple(range(11))
        assert tx.tables == ["t"] and {"t", "commit"} <= set(dir(tx)) and {"by_n", "insert"} <= set(dir(tx.t))
        assert "by_n" in repr(tx.t.by_n)
        with pytest.raises(annals.errors.NotFound, match="the tables are: t"):
            tx["nothing"]
        with pytest.raises(AttributeError, match="its indexes are: by_n, by_s"):
            tx.t.nothing


def test_rows_may_be_changed_while_they_are_iterated(db):
    with db.write() as tx:
        for row in tx.t:
            tx.t.update(row.id, n=row.n + 100)
            tx.t.insert(n=row.n + 200)
        for row in tx.t:
            if row.id % 2:
                tx.t.delete(row.id)
            # Those that come later aren't there any more.
            if row.id == 10:
                tx.t.delete(12)
    assert [row.id for row in db.t] == [0, 2, 4, 6, 8, 10, 14, 16, 18]


def test_an_iterator_of_a_transaction_that_is_over_says_so(db):
    with db.write() as tx:
        iterator = iter(tx.t)
        next(iterator)
    with pytest.raises(annals.errors.Invalid, match="over"):
        next(iterator)


def test_a_call_of_another_thread_waits_for_a_bulk_insert(db):
    begun = threading.Event()

    def slow():
        for n in range(20, 30):
            begun.set()
            yield {"n": n}

    with db.write() as tx:
        thread = threading.Thread(target=lambda: tx.t.insert_all(slow()))
        thread.start()
        begun.wait(20)
        tx.t.insert(n=1000)
        thread.join(20)
    assert sorted(row.n for row in db.t) == [*range(10), *range(20, 30), 1000]


def test_one_statement_after_an_error_at_commit(db):
    with pytest.raises(annals.errors.Unique), db.write() as tx:
        tx.t.insert(n=0)
    assert len(db.t) == 10
    db.write(timeout=5).rollback()
