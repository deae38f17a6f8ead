"""What people write by mistake, or in other forms: it is taken without loss, or refused in words, and nothing is changed."""

import gc
import pathlib
from datetime import date, datetime, timezone
from decimal import Decimal

import annals
import pytest

SCHEMA = """create_table t
add_field t n int64
add_field t s string
add_field t small int8 null
add_field t price decimal(2) null
add_field t ratio float32 null
add_field t ok bool null
add_field t at timestamp null
add_field t day date null
add_field t doc json null
add_field t raw bytes null
create_unique_index t_by_s t s
"""


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as db:
        yield db


def insert(db, **fields):
    with db.write() as tx:
        return tx.t.insert(**fields)


@pytest.mark.parametrize("fields, said", [
    ({"n": 1.0}, "int64"), ({"n": True}, "int64"), ({"n": None}, "may not be null"), ({"n": 2**63}, "int64"),
    ({"n": "1"}, "int64"), ({"small": 200}, "int8"), ({"s": b"a"}, "string"), ({"s": "\ud800"}, "string"),
    ({"price": 0.1}, "decimal"), ({"price": Decimal("NaN")}, "decimal"), ({"price": Decimal("0.125")}, "decimal"),
    ({"ratio": 1e300}, "float32"), ({"ok": 1}, "bool"), ({"at": datetime(2020, 1, 1)}, "time zone"),
    ({"at": date(2020, 1, 1)}, "timestamp"), ({"day": datetime(2020, 1, 1, tzinfo=timezone.utc)}, "date"),
    ({"doc": "{"}, "json"), ({"doc": {"a": 1}}, "json"), ({"raw": "text"}, "bytes"), ({"raw": [1, 2]}, "bytes"),
])
def test_wrong_values_are_refused(db, fields, said):
    with pytest.raises(annals.errors.Invalid, match=said):
        insert(db, **{"n": 1, "s": "a", **fields})
    assert len(db.t) == 0


def test_numbers_of_numpy_are_numbers(db):
    np = pytest.importorskip("numpy")
    insert(db, n=np.int64(5), s=np.str_("a"), small=np.int8(-3), ratio=np.float32(0.5), ok=np.bool_(True))
    row = db.t[np.int64(0)]
    assert (row.n, row.s, row.small, row.ratio, row.ok) == (5, "a", -3, 0.5, True)
    with pytest.raises(annals.errors.Invalid):
        insert(db, n=np.float64(5), s="b")
    with pytest.raises(annals.errors.Invalid):
        insert(db, n=np.bool_(True), s="b")
    assert list(db.sql("SELECT ?, ?, ?", [np.int64(3), np.float32(0.5), np.bool_(True)])) == [(3, 0.5, 1)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda db: db.write(comment=5), "comment: write a text, not 5 (int)"),
        (lambda db: db.write(comment="\ud800"), "comment: write a text of whole characters, not '\\ud800' (str)"),
        (lambda db: db.write(timeout=-1), "timeout: write a number of seconds from 0 on, not -1 (int)"),
        (lambda db: db.write(timeout="long"), "timeout: write a number of seconds from 0 on, not 'long' (str)"),
        (lambda db: db.subscribe(after=-1), "after: write a whole number from 0 on, not -1 (int)"),
        (lambda db: db.subscribe().next(timeout=[]), "timeout: write a number of seconds from 0 on, not [] (list)"),
        (lambda db: db.t.changes(-1), "first: write a whole number from 0 on, not -1 (int)"),
        (lambda db: db.t.changes(0, 1.5), "last: write a whole number from 0 on, not 1.5 (float)"),
        (lambda db: db.write().comment(None), "comment: write a text, not None (NoneType)"),
        (lambda db: db.write().revert(2**64), "txid: write a whole number from 0 on, not 18446744073709551616 (int)"),
        (lambda db: annals.open("x.annals", keep_bytes=-1), "keep_bytes: write a whole number from 0 on, not -1 (int)"),
        (lambda db: annals.open("x.annals", schema=pathlib.Path("x.schema")), "schema: write a text, not "),
        (lambda db: annals.in_memory(b"create_table t"), "schema: write a text, not b'create_table t' (bytes)"),
    ],
)
def test_a_wrong_argument_is_named(db, call, said):
    with pytest.raises(ValueError) as raised:
        call(db)
    assert type(raised.value) is annals.errors.Invalid and str(raised.value).startswith(said)


def test_what_a_transaction_and_a_snapshot_lack_is_said(db):
    with db.write() as tx:
        for name, said in [("sql", "db.sql(..) asks for what is committed"), ("history", "db.history(..)")]:
            with pytest.raises(AttributeError) as raised:
                getattr(tx, name)
            assert str(raised.value).startswith(f"a transaction has no `{name}`") and said in str(raised.value)
        with pytest.raises(AttributeError, match="there is no table \"nothing\"; the tables are: "):
            tx.nothing
    with pytest.raises(AttributeError, match="a snapshot has no `sql`: db.sql"):
        db.read().sql


def test_wrong_moments_are_refused(db):
    for moment in [1.5, None, True, -1, date(2020, 1, 1), "noon", datetime(2020, 1, 1), 99]:
        with pytest.raises(annals.Error):
            db.at(moment)
    with pytest.raises(annals.errors.Invalid, match="no moment"):
        db.at(1.5)
    with pytest.raises(annals.errors.Invalid, match="datetime"):
        db.write(time=5)
    db.write().rollback()


def test_wrong_rows_change_nothing(db):
    for rows in ["abc", [1], [("n", 1)], [{"n": 1, "s": "a"}, {"n": 1, "s": "a"}], [{"n": 1, "nothing": 2}]]:
        with pytest.raises(annals.Error), db.write() as tx:
            tx.t.insert_all(rows)
    for wrong in [lambda tx: tx.t.update(7, n=1), lambda tx: tx.t.delete(7), lambda tx: tx.revert(99),
                  lambda tx: tx.nothing, lambda tx: tx.t.insert(nothing=1)]:
        with pytest.raises((annals.Error, AttributeError)), db.write() as tx:
            wrong(tx)
    assert len(db.t) == 0


def test_a_generator_may_read_the_transaction_and_not_end_it(db):
    def rows(tx):
        yield {"n": 1, "s": "a"}
        yield {"n": len(tx.t) + 1, "s": "b"}
        tx.commit()

    with pytest.raises(annals.errors.Invalid, match="taking rows"), db.write() as tx:
        tx.t.insert_all(rows(tx))
    assert len(db.t) == 0


def test_a_transaction_that_nobody_ends_is_rolled_back(db):
    tx = db.write()
    tx.t.insert(n=1, s="a")
    del tx
    gc.collect()
    insert(db, n=2, s="b")
    assert [row.s for row in db.t] == ["b"]


def test_a_closed_database_can_be_looked_at(db):
    db.close()
    assert "read" in dir(db) and "closed" in repr(db)
    for use in [lambda: db.t, lambda: db.sql("SELECT 1"), lambda: db.at(1), db.read, db.write]:
        with pytest.raises(annals.errors.Closed, match="open it again"):
            use()


def test_sql_only_reads(db):
    for statement in ["DELETE FROM t", "DROP TABLE t", "CREATE TABLE x(a)", "INSERT INTO t(n) VALUES (1)"]:
        with pytest.raises(annals.errors.Unsupported, match="SQL"):
            db.sql(statement)
