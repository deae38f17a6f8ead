"""A value is stored as it is, or refused: nothing in between."""

import array
import math
import subprocess
from datetime import date, datetime, timezone, tzinfo
from decimal import Decimal
from uuid import UUID

import annals
import pytest

SCHEMA = """create_table t
add_field t n int64 null
add_field t big uint64 null
add_field t f float64 null
add_field t f32 float32 null
add_field t raw bytes null
add_field t four bytes(4) null
add_field t file blob null
add_field t at timestamp null
add_field t day date null
add_field t price decimal(2) null
add_field t key uuid null
add_field t ok bool null
add_field t s string null
"""


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as db:
        yield db


def stored(db, **fields):
    """Returns how a value comes back, or None if it is refused."""
    (name,) = fields
    with db.write() as tx:
        try:
            id = tx.t.insert(**fields)
        except annals.errors.Invalid as error:
            assert name in str(error)
            return None
    return db.t[id][name]


BYTES = [b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), memoryview(array.array("B", b"abcd")), memoryview(b"a.b.c.d.")[::2]]
NO_BYTES = ["abcd", [1, 2, 3, 4], (1, 2, 3, 4), range(4), 5, array.array("B", b"abcd"), array.array("i", [1]),
            array.array("H", [1, 2]), array.array("d", [1.0]), memoryview(array.array("i", [1])), {97: 1}, iter(b"abcd")]


@pytest.mark.parametrize("field", ["raw", "four", "file"])
def test_bytes_are_bytes(db, field):
    for given in BYTES:
        assert stored(db, **{field: given}) == bytes(memoryview(given)) == b"abcd"
    for given in NO_BYTES:
        assert stored(db, **{field: given}) is None, given
    assert len(db.t) == len(BYTES)


def test_what_numpy_has_is_no_bytes(db):
    np = pytest.importorskip("numpy")
    assert stored(db, raw=memoryview(np.frombuffer(b"abcd", "u1"))[::-1]) == b"dcba"
    assert stored(db, raw=np.bytes_(b"abcd")) == b"abcd"
    for kind in ["u1", "?", "<u2", ">u4", "i8", "f8", "M8[us]"]:
        for value in [np.zeros(2, kind), np.zeros(2, kind)[0]]:
            for field in ["raw", "file"]:
                assert stored(db, **{field: value}) is None, kind
            with db.write() as tx, pytest.raises(annals.errors.Invalid, match="`raw`"):
                tx.t.insert_all([{"raw": value}])
            if kind.startswith("M"):
                with pytest.raises(annals.errors.Invalid, match="params"):
                    db.sql("SELECT ?", [value])
    for value in [np.datetime64("2024-01-01"), np.timedelta64(5, "s"), np.datetime64("NaT")]:
        for field in ["n", "f", "f32", "raw", "four", "file", "at", "day", "price", "key", "ok", "s"]:
            assert stored(db, **{field: value}) is None, field
        with pytest.raises(annals.errors.Invalid, match="params"):
            db.sql("SELECT ?", [value])


def test_a_decimal_that_arrow_has_no_room_for_is_named():
    pl = pytest.importorskip("polars")
    with annals.in_memory("create_table account\nadd_field account amount decimal(2)\n") as db:
        with db.write() as tx:
            tx.account.insert_all([{"amount": Decimal("1.50")}, {"amount": Decimal(10) ** 36}])
        assert db.account[1].amount == 10**36
        for stream in [db.account, db.account[:], db.account.changes()]:
            with pytest.raises(Exception) as raised:
                pl.DataFrame(stream)
            said = str(raised.value)
            assert "table `account`, row 1, field `amount`" in said and "CAST(amount AS TEXT)" in said, said
        with pytest.raises(Exception, match="row 1 of the answer.*CAST\\(amount AS TEXT\\)"):
            pl.DataFrame(db.sql("SELECT amount FROM account"))
        texts = pl.DataFrame(db.sql("SELECT CAST(amount AS TEXT) AS amount FROM account"))
        assert texts["amount"].to_list() == ["1.50", f"1{'0' * 36}.00"]


def test_parameters_of_sql_are_values_too(db):
    for given in BYTES:
        assert db.sql("SELECT ?", [given])[0] == (b"abcd",)
    for given in [array.array("i", [1]), memoryview(array.array("i", [1])), [1], object(), 2**64, -2**63 - 1, "\ud800",
                  Decimal("Infinity"), Decimal("NaN"), Decimal("1E+999999999"), Decimal("0E-999999999"), Decimal("1E-999999999")]:
        with pytest.raises(annals.errors.Invalid, match="params"):
            db.sql("SELECT ?", [given])
    assert db.sql("SELECT ?", [2**64 - 1])[0] == (2**64 - 1,)
    with db.write() as tx:
        tx.t.insert_all([{"f": math.nan}, {"f": 1.0}])
    assert list(db.sql("SELECT id FROM t WHERE f = ?", [math.nan])) == [(0,)]
    with pytest.raises(annals.errors.Invalid, match="params: write a list"):
        db.sql("SELECT ?", 5)


MOST = "1701411834604692317316873037158841057.2"


@pytest.mark.parametrize("fields, wanted", [
    ({"f": 1}, 1.0), ({"f": 2**53}, 2.0**53), ({"f": 2**53 + 1}, None), ({"f": 10**400}, None), ({"f": "1"}, None),
    ({"f": True}, None), ({"f": Decimal("0.5")}, 0.5), ({"f": Decimal("0.1")}, None), ({"f32": 2**25}, 2.0**25),
    ({"f32": 1e39}, None), ({"n": 1.0}, None), ({"n": 2**63}, None), ({"n": -2**63}, -2**63), ({"n": True}, None),
    ({"big": -1}, None), ({"big": 2**64 - 1}, 2**64 - 1), ({"price": Decimal("0.125")}, None), ({"price": 0.5}, None),
    ({"price": Decimal("1E+2")}, Decimal(100)), ({"price": 3}, Decimal(3)), ({"price": Decimal("NaN")}, None),
    ({"price": Decimal("1.5000")}, Decimal("1.50")), ({"price": Decimal("-1E+999999999")}, None), ({"price": 10**37}, None),
    ({"price": Decimal("0E-999999999")}, Decimal(0)), ({"price": Decimal(f"-{MOST}8")}, Decimal(f"-{MOST}8")),
    ({"price": Decimal(f"{MOST}8")}, None), ({"price": Decimal("-Infinity")}, None),
    ({"ok": 1}, None), ({"s": b"a"}, None), ({"s": 5}, None), ({"key": b"a" * 16}, None),
    ({"key": "00000000-0000-0000-0000-000000000007"}, UUID(int=7)), ({"key": "7"}, None),
    ({"at": datetime(2020, 1, 1)}, None), ({"at": date(2020, 1, 1)}, None), ({"at": 5}, None), ({"at": "2020-01-01"}, None),
    ({"day": datetime(2020, 1, 1, tzinfo=timezone.utc)}, None), ({"day": "2020-01-01"}, None), ({"day": 5}, None),
])
def test_numbers_and_others(db, fields, wanted):
    assert stored(db, **fields) == wanted


SAME = [(name, value, wanted) for name, values in [
    ("f", [(2**53, 2.0**53), (2**53 + 1, None), (2**62, 2.0**62), (2**62 + 1, None), (-2**63, -2.0**63), (2**63 - 1, None)]),
    ("f32", [(2**24, 2.0**24), (2**24 + 1, None), (2**62, 2.0**62), (0.1, 0.10000000149011612), (0.5, 0.5), (1e39, None),
             (-1e39, None), (math.inf, math.inf), (2**53 + 1, None)]),
] for value, wanted in values]


@pytest.mark.parametrize("field, value, wanted", SAME)
@pytest.mark.parametrize("way", ["argument", "dictionary", "pyarrow", "polars", "pandas"])
def test_a_number_is_the_same_in_all_ways(db, field, value, wanted, way):
    library = pytest.importorskip(way) if way in ["pyarrow", "polars", "pandas"] else None
    row, columns = {field: value}, {field: [value]}
    rows = {
        "argument": lambda: None,
        "dictionary": lambda: [row],
        "pyarrow": lambda: library.table(columns),
        "polars": lambda: library.DataFrame(columns),
        "pandas": lambda: library.DataFrame(columns),
    }[way]()
    with db.write() as tx:
        try:
            assert tx.t.insert(**row) == 0 if rows is None else tx.t.insert_all(rows) == 1
        except annals.errors.Invalid as error:
            assert f"`{field}`" in str(error) and (rows is None or way == "dictionary" or "row 0" in str(error))
    assert [row[field] for row in db.t] == ([] if wanted is None else [wanted])


def test_values_of_pandas(db):
    pd = pytest.importorskip("pandas")
    with db.write() as tx:
        for missing in [None, pd.NA, pd.NaT]:
            tx.t.insert(n=missing, at=missing, s=missing)
    assert [(row.n, row.at, row.s) for row in db.t] == [(None, None, None)] * 3
    # What pandas writes for a missing number is a number of Python: only fields of floats take it.
    assert math.isnan(stored(db, f=float("nan")))
    for field in ["n", "big", "price", "s", "at", "day"]:
        assert stored(db, **{field: float("nan")}) is None
    time = pd.Timestamp("2024-02-29T01:02:03.000004", tz="UTC")
    assert stored(db, at=time) == time.to_pydatetime()
    with db.write() as tx:
        with pytest.raises(annals.errors.Invalid, match="microseconds"):
            tx.t.insert(at=pd.Timestamp("2024-02-29T01:02:03.000000004", tz="UTC"))
        with pytest.raises(annals.errors.Invalid, match="no time zone"):
            tx.t.insert(at=pd.Timestamp("2024-02-29"))
        for time in [pd.Timestamp("2024-02-29"), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=NoZone())]:
            with pytest.raises(annals.errors.Invalid, match="^field `at`: .*no time zone"):
                tx.t.insert_all([{"at": time}])
    assert stored(db, at=pd.Timestamp("2024-02-29T01:00", tz="Europe/Paris")) == datetime(2024, 2, 29, tzinfo=timezone.utc)


def test_times_of_frames_have_a_zone_too(db):
    pl = pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    time = datetime(2024, 7, 1, 12)
    for frame in [pl.DataFrame({"at": [time]}), pd.DataFrame({"at": [time]})]:
        with db.write() as tx, pytest.raises(annals.errors.Invalid, match="no time zone"):
            tx.t.insert_all(frame)
    with db.write() as tx:
        tx.t.insert_all(pl.DataFrame({"at": [time]}).with_columns(pl.col("at").dt.replace_time_zone("UTC")))
        tx.t.insert_all(pd.DataFrame({"at": [time]}).assign(at=lambda it: it["at"].dt.tz_localize("UTC")))
    assert [row.at for row in db.t] == [time.replace(tzinfo=timezone.utc)] * 2


def test_columns_without_values(db):
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    frames = [pl.DataFrame({"n": [1, 2], "s": [None, None]}), pa.table({"n": [1, 2], "s": pa.nulls(2)}),
              pd.DataFrame({"n": [1, 2], "s": [None, None]}), duckdb.sql("select unnest([1, 2]) as n, null as s")]
    for frame in frames:
        with db.write() as tx:
            tx.t.delete_all(tx.t.ids())
            assert tx.t.insert_all(frame) == 2
        assert [(row.n, row.s) for row in db.t] == [(1, None), (2, None)]


def test_frames_of_pandas(db):
    pd = pytest.importorskip("pandas")
    with db.write() as tx:
        tx.t.insert_all([{"n": 1, "s": "a"}, {"n": 2, "s": "b"}, {"n": 3}])
    frame = pd.DataFrame(db.t)
    assert list(frame.columns)[:2] == ["n", "big"] and frame["n"].tolist() == [1, 2, 3]
    assert pd.DataFrame(list(db.t)).equals(frame)
    assert pd.DataFrame.from_arrow(db.t)["id"].tolist() == [0, 1, 2]
    # An index of pandas, which rows have that were chosen, is no field.
    chosen = pd.DataFrame.from_arrow(db.t).iloc[[2, 0, 1]].drop(columns="id")
    assert not isinstance(chosen.index, pd.RangeIndex)
    with db.write() as tx:
        assert tx.t.insert_all(chosen) == 3
    assert [(row.n, row.s) for row in db.t][3:] == [(3, None), (1, "a"), (2, "b")]


FAR = [("day", "+12345-01-01"), ("day", "-00044-03-15"), ("at", f"@{10**18}"), ("at", f"@-{10**17}")]


@pytest.mark.parametrize("field, far", FAR)
def test_dates_that_python_does_not_have_are_texts(db, field, far):
    with db.write() as tx:
        tx.t.insert_all([{"n": 1}, {"n": 2, field: far}, {"n": 3}])
    assert [(row.n, row[field]) for row in db.t] == [(1, None), (2, far), (3, None)]
    assert db.history("t", 1)[0].new[field] == far
    assert [change.new[field] for change in db.diff(db.read().txid - 1)] == [None, far, None]
    feed = db.subscribe(after=db.read().txid - 1)
    assert [change.new[field] for change in feed.next(timeout=5).rows] == [None, far, None]
    with annals.in_memory(SCHEMA) as copy, copy.write() as tx:
        tx.t.insert_all(row.asdict() for row in db.t)
        assert [row[field] for row in tx.t] == [None, far, None]


def test_a_transaction_of_a_far_time(db):
    far = "+12345-01-01T00:00:00Z"
    with pytest.raises(annals.errors.Invalid, match="datetime"):
        db.write(time=far)


class NoZone(tzinfo):
    def utcoffset(self, time):
        return None


FIELD_ID = "create_table t\nadd_field t id int64\nadd_field t s string null\ncreate_unique_index t_by_s t s\n"


def test_a_field_may_be_called_id():
    with annals.in_memory(FIELD_ID) as db:
        with db.write() as tx:
            assert tx.t.insert(id=5) == 0
            assert tx.t.insert_all([{"id": 6}]) == 1
            assert tx.t.insert_row({"id": 7}) == 2
            assert tx.t.insert_row({"id": 8}, id=20) == 20
            tx.t.update(0, id=9)
        assert [(row.id, row["id"], row.asdict()["id"]) for row in db.t] == [(0, 9, 9), (1, 6, 6), (2, 7, 7), (20, 8, 8)]
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame(db.t)
        assert frame.columns == ["id", "t.id", "s"]
        with annals.in_memory(FIELD_ID) as copy, copy.write() as tx:
            tx.t.insert_all(frame)
            assert [(row.id, row["id"]) for row in tx.t] == [(0, 9), (1, 6), (2, 7), (20, 8)]
            tx.t.insert_all(pl.DataFrame({"id": [5]}))
            assert tx.t[21]["id"] == 5


@pytest.mark.parametrize("way", ["dictionaries", "polars", "pandas"])
def test_a_field_id_is_the_same_in_all_ways(way):
    library = pytest.importorskip(way) if way != "dictionaries" else None
    frame = (lambda rows: rows) if library is None else library.DataFrame

    def found(tx):
        return [(row.id, row["id"], row.s) for row in tx.t]

    with annals.in_memory(FIELD_ID) as db, db.write() as tx:
        tx.t.insert_all(frame([{"id": 5, "s": "a"}]))
        tx.t.insert_all(frame([{"id": 40, "t.id": 6, "s": "b"}]))
        assert found(tx) == [(0, 5, "a"), (40, 6, "b")]
        tx.t.update_all(frame([{"id": 0, "t.id": 7}, {"id": 40, "t.id": 8}]))
        assert found(tx) == [(0, 7, "a"), (40, 8, "b")]
        for refused in [lambda rows: tx.t.update_all(rows), lambda rows: tx.t.upsert_all(rows, "id")]:
            with pytest.raises(annals.errors.Invalid, match="field `id` is `t.id`"):
                refused(frame([{"id": 0, "s": "c"}]))
        tx.t.upsert_all(frame([{"id": 40, "t.id": 9, "s": "b"}, {"id": 41, "t.id": 1, "s": "c"}]), "id")
        tx.t.upsert_all(frame([{"id": 3, "s": "a"}, {"id": 2, "s": "d"}]), "by_s")
        assert found(tx) == [(0, 3, "a"), (40, 9, "b"), (41, 1, "c"), (42, 2, "d")]
        tx.t.update(40, id=0)
        tx.t.update(41, **{"t.id": 4})
        assert tx.t.upsert("id", **{"id": 42, "t.id": 5}) == 42
        assert tx.t.insert(**{"id": 50, "t.id": 6, "s": "e"}) == tx.t.insert_row({"t.id": 7, "s": "f"}, id=51) - 1 == 50
        assert found(tx) == [(0, 3, "a"), (40, 0, "b"), (41, 4, "c"), (42, 5, "d"), (50, 6, "e"), (51, 7, "f")]
        with annals.in_memory(FIELD_ID) as copy, copy.write() as other:
            other.t.insert_all(frame([dict(row) for row in tx.t]))
            assert [row["id"] for row in other.t] == [row["id"] for row in tx.t]
        assert tx.t.delete_all(frame([{"id": 0}, {"id": 50}]) if library else [0, 50]) == 2
        assert tx.t.ids() == (40, 41, 42, 51)


def test_ids_of_rows(db):
    with db.write() as tx:
        assert tx.t.insert(id=5) == 5 and tx.t.insert(id=None) == 6
        for id in [-1, 2**63, 2**64, 10**30, 1.5, "5", True, b"5", [5]]:
            with pytest.raises(annals.errors.Invalid):
                tx.t.insert(id=id)
            for use in [tx.t.update, tx.t.delete]:
                with pytest.raises(annals.Error):
                    use(id)
        with pytest.raises(annals.errors.InUse):
            tx.t.insert(id=5)
        with pytest.raises(annals.errors.Invalid, match="stays"):
            tx.t.update(5, id=6)
    for id in [-1, 2**64, 10**30, 99]:
        assert db.t.get(id) is None and id not in db.t
        with pytest.raises(annals.errors.NotFound):
            db.t[id]
        with pytest.raises(annals.errors.NotFound):
            db.history("t", -1 if id == 99 else id)
    for id in [1.5, "a", None, True]:
        assert id not in db.t
        with pytest.raises(annals.errors.Invalid):
            db.t[id]
