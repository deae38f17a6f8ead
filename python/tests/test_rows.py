"""Rows, answers and tables as other things of Python: sequences, mappings, pickles, what notebooks show."""

import copy
import pickle
import tracemalloc
from datetime import date
from decimal import Decimal

import annals
import pytest

SCHEMA = """create_table t
add_field t n int64
add_field t s string null
add_field t keys string null
create_unique_index t_by_n t n
create_index t_by_s_n t s,n
create_table read
add_field read x int64
"""


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as db:
        with db.write() as tx:
            tx.t.insert_all([{"n": 1, "s": "a"}, {"n": 2, "s": "<b>&"}, {"n": 3}])
        yield db


def test_a_row_is_a_sequence_and_a_mapping(db):
    row = db.t[0]
    assert dict(row) == row.asdict() == {"n": 1, "s": "a", "keys": None} and row["keys"] is None
    assert list(row) == [1, "a", None] and len(row) == 3
    n, *rest = row
    assert (n, rest) == (1, ["a", None])
    assert row["id"] == row.id == 0 and row["s"] == row[1] == row[-2] == "a" and row[:2] == (1, "a")
    with pytest.raises(KeyError):
        row["nothing"]
    with pytest.raises(IndexError):
        row[3]
    assert {**row} == row.asdict() and {"n", "s", "id"} <= set(dir(row))


def test_what_is_pickled_comes_back(db):
    db.write(comment="x").commit()
    version = db.history("t", 1)
    things = [db.t[1], list(db.t), version, db.blame("t", 1), db.diff(0), db.subscribe(after=1).next(timeout=5)]
    for thing in things:
        for made in [pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)]:
            assert made == thing and repr(made) == repr(thing)
    row = pickle.loads(pickle.dumps(db.t[1]))
    assert (row.id, row.s, dict(row)) == (1, "<b>&", dict(db.t[1]))
    answer = db.sql("SELECT *, 1.5, x'00ff', ? FROM t", [2**64 - 1])
    again = pickle.loads(pickle.dumps(answer))
    assert again.columns == answer.columns and list(again) == list(answer)
    with pytest.raises(annals.errors.Invalid):
        annals._core._row("t", ["a"], 0, [])


def test_slices(db):
    assert [row.n for row in db.t[1:]] == [2, 3] and [row.n for row in db.t[:1]] == [1]
    assert [row.n for row in db.t[:][::-1]] == [3, 2, 1] and db.t[:][-1].n == 3
    assert db.sql("SELECT n FROM t ORDER BY n")[1:] == [(2,), (3,)]
    for wrong in [lambda: db.t[::2], lambda: db.t[-1:], lambda: db.t[:"a"]]:
        with pytest.raises(annals.errors.Invalid):
            wrong()
    with pytest.raises(IndexError):
        db.t[:][3]


def test_tables_by_name(db):
    assert db.tables == db.read().tables == ["t", "read"]
    assert len(db["read"]) == 0 and callable(db.read)
    with db.write() as tx:
        tx["read"].insert(x=1)
    assert db["read"][0].x == db.read()["read"][0].x == 1
    assert {"t", "read", "write"} <= set(dir(db)) and {"by_n", "get"} <= set(dir(db.t))
    for wrong in [lambda: db["nothing"], lambda: db.nothing]:
        with pytest.raises((KeyError, AttributeError), match="the tables are: t, read"):
            wrong()


def test_indexes_by_name():
    schema = "create_table t\nadd_field t n int64\n" + "".join(
        f"create_unique_index {name} t n\n" for name in ["t_range", "get", "index", "t_by_n", "name"])
    with annals.in_memory(schema) as db:
        with db.write() as tx:
            tx.t.insert(n=5)
            for table in [tx.t, db.t]:
                for name in ["range", "t_range", "get", "index", "by_n", "t_by_n", "name"]:
                    assert name in repr(table.index(name)) and type(table.index(name)) is annals.Index
                assert table.name == "t" and callable(table.range) and callable(table.get)
                with pytest.raises(annals.errors.NotFound, match="has no index \"nothing\"; its indexes are: range, get"):
                    table.index("nothing")
                assert len(dir(table)) == len(set(dir(table)))
            assert tx.t.index("range")[5].n == 5 and tx.t.upsert("range", n=5) == 0
        assert db.t.index("get").get(5).id == 0


def test_a_key_has_all_values_of_its_index(db):
    assert db.t.by_s_n.get("a", 1).id == 0 and db.t.by_s_n["a", 1].id == 0 and ("a", 1) in db.t.by_s_n
    for wrong in [(), ("a",), ("a", 1, 2)]:
        with pytest.raises(annals.errors.Invalid, match="by_s_n"):
            db.t.by_s_n.get(*wrong)
    with pytest.raises(annals.errors.Invalid):
        db.t.by_n.get()
    assert [row.n for row in db.t.by_s_n.equal("a")] == [1]


def test_only_selected_fields_are_there(db):
    for table in [db.t, db.read().t]:
        some = table.range(select=["n"])
        assert [dict(row) for row in some] == [{"n": row.n} for row in table] and len(some) == len(table)
        assert repr(some[0]) == "t(id=0, n=1)" and [row.n for row in some[1:]] == [2, 3]
        with pytest.raises(AttributeError, match="has no field"):
            some[0].s
        assert [dict(row) for row in table.by_n.range(first=2, select="n")] == [{"n": 2}, {"n": 3}]
        assert [dict(row) for row in table.by_s_n.equal("a", select=("n", "s"))] == [{"n": 1, "s": "a"}]
        assert [row.n for row in table.by_s_n.prefix("a", select=["n"])] == [1]
        for wrong, why in [(["x"], "has no field \"x\"; its fields: n, s"), (["n", "n"], "twice"), (7, "names of fields")]:
            with pytest.raises(annals.errors.Invalid, match=why):
                table.range(select=wrong)
    with db.write() as tx:
        tx.t.insert_all({"n": n, "s": str(n)} for n in range(10, 2010))
        assert sum(row.n for row in tx.t.range(select="n")) == sum(row.n for row in tx.t)
    assert [row.n for row in db.t.by_n.range(select=["n"])] == sorted(row.n for row in db.t)


def test_few_large_rows_are_read_together():
    with annals.in_memory("create_table t\nadd_field t s string\nadd_field t b blob null\n") as db:
        with db.write() as tx:
            tx.t.insert_all({"s": "x" * (1 << 20), "b": None} for _ in range(40))
            tx.t.insert_all({"s": "", "b": b"y" * (1 << 20)} for _ in range(40))
        for rows in [db.t, db.t.range()]:
            tracemalloc.start()
            assert sum(len(row.s) + len(row.b or b"") for row in rows) == 80 << 20
            assert tracemalloc.get_traced_memory()[1] < 12 << 20
            tracemalloc.stop()


def test_notebooks_show_tables(db):
    for shown in [db.t, db.t[:], db.t.by_n.range(first=1), db.sql("SELECT id, n, s, keys FROM t")]:
        html = shown._repr_html_()
        assert html.count("<tr>") == 4 and "&lt;b&gt;&amp;" in html and "<b>" not in html and "3 rows" in html
    with db.write() as tx:
        tx.t.insert_all({"n": n, "s": "x" * 1000} for n in range(10, 1010))
    html = db.t._repr_html_()
    assert html.count("<tr>") == 21 and "1003 rows" in html and len(html) < 10_000


def test_everything_that_is_returned_has_a_name_in_the_package(db):
    with db.write() as tx:
        things = [db, db.read(), db.t, db.t[0], db.t[:], iter(db.t), db.t.by_n, db.t.changes(), tx, tx.t, tx.savepoint(),
                  db.sql("SELECT 1"), db.subscribe(), db.history("t", 0)[0], db.blame("t", 0)[0], db.diff(0)[0]]
    for thing in things:
        assert getattr(annals, type(thing).__name__) is type(thing)
    assert annals.__version__.count(".") == 2


def test_values_of_rows_can_be_compared(db):
    with annals.in_memory("create_table t\nadd_field t p decimal(1)\nadd_field t d date\n") as other, other.write() as tx:
        tx.t.insert(p=Decimal("1.5"), d=date(2020, 1, 1))
        assert tx.t[0] == tx.t[0] != db.t[0] and tx.t[0] != 5
