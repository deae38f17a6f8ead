"""Erased values: None wherever they are read, also in fields that aren't null, and nothing else breaks."""

import datetime
import decimal
import os
import pickle
import subprocess
import uuid

import annals
import pytest

VALUES = {
    "bool": [True, False, True],
    "int32": [1, 2, 3],
    "uint64": [1, 2**63, 3],
    "float64": [0.5, 1.5, 2.5],
    "string": ["a", "b", "c"],
    "json": ["1", "[]", "{}"],
    "bytes": [b"a", b"b", b"c"],
    "bytes(2)": [b"aa", b"bb", b"cc"],
    "timestamp": [datetime.datetime(2024, 1, day, tzinfo=datetime.timezone.utc) for day in (1, 2, 3)],
    "date": [datetime.date(2024, 1, day) for day in (1, 2, 3)],
    "uuid": [uuid.UUID(int=number) for number in (1, 2, 3)],
    "decimal(2)": [decimal.Decimal(f"{number}.50") for number in (1, 2, 3)],
    "enum(x,y,z)": ["x", "y", "z"],
    "references other": [0, 1, 2],
}
FIELDS = [f"f{number}" for number in range(len(VALUES))]
SCHEMA = "create_table other\ncreate_table t\nadd_field t n int64\n" + "".join(
    f"add_field t {field} {kind}\ncreate_index t_by_{field} t {field}\n" for field, kind in zip(FIELDS, VALUES)
).replace("create_index t_by_f5 t f5\n", "")
INDEXED = [field for field in FIELDS if field != "f5"]


@pytest.fixture
def db(tmp_path):
    """Row 1 has erased values."""
    program = os.environ.get("ANNALS_PROGRAM")
    if program is None:
        pytest.skip("ANNALS_PROGRAM isn't set: it is the program `annals`")
    with annals.open(tmp_path / "a.annals", schema=SCHEMA) as db:
        with db.write() as tx:
            tx.other.insert_all([{}, {}, {}])
        for number in range(3):
            with db.write(comment=f"row {number}") as tx:
                tx.t.insert(n=number, **{field: values[number] for field, values in zip(FIELDS, VALUES.values())})
        with db.write(comment="counted") as tx:
            tx.t.update(1, n=11)
    for field in FIELDS:
        command = [program, "erase", "a.annals", "t", "1", "--field", field, "--yes"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with annals.open(tmp_path / "a.annals") as db:
        yield db


def test_rows_and_indexes(db):
    for table in [db.t, db.at("comment:counted").t, db.as_it_was("comment:counted").t, db.at("comment:row 2").t]:
        rows = list(table)
        assert [row.id for row in rows] == [0, 1, 2]
        for field, values in zip(FIELDS, VALUES.values()):
            assert [row[field] for row in rows] == [values[0], None, values[2]], field
            if field not in INDEXED:
                continue
            index = getattr(table, f"by_{field}")
            assert index[values[0]].id == 0 and [row.id for row in index.equal(values[2])][-1] == 2
            assert index.get(values[1]) is None and values[1] not in index
            assert index.get(None).id == 1 and next(iter(index)).id == 1 and len(list(index)) == 3
            assert {row.id for row in index.range(first=values[0])} == {0, 2}
            assert [row.id for row in index.range(end=values[0])] == []
        assert pickle.loads(pickle.dumps(rows[1])) == rows[1] and len(table[:]) == 3
        assert "None" in repr(rows[1]) and "None" in table._repr_html_()


def test_the_past(db):
    versions = db.history("t", 1)
    assert [version.kind for version in versions[:2]] == ["insert", "update"]
    for version in versions:
        for side in filter(None, [version.old, version.new]):
            assert [side[field] for field in FIELDS] == [None] * len(FIELDS)
    assert {it.field: it.value for it in db.blame("t", 1)} == {"n": 11, **dict.fromkeys(FIELDS)}
    (change,) = db.diff("comment:row 2", "comment:counted")
    assert (change.old["n"], change.new["n"]) == (1, 11)
    feed, comments = db.subscribe(after=0), []
    while (commit := feed.next(timeout=0.1)) is not None:
        comments.append(commit.comment)
    assert [it for it in comments if it and it.startswith("row")] == ["row 0", "row 1", "row 2"]


def test_frames_and_sql(db):
    pl = pytest.importorskip("polars")
    for table in [db.t, db.t.by_f4.equal("a"), db.at("comment:counted").t, db.t.by_f1.range(), db.t[1:]]:
        for row in pl.DataFrame(table).to_dicts():
            for field, values in zip(FIELDS, VALUES.values()):
                wanted = None if row["id"] == 1 else values[row["id"]]
                found = uuid.UUID(bytes=row[field]) if isinstance(wanted, uuid.UUID) else row[field]
                assert found == wanted, field
    assert len(pl.DataFrame(db.t.changes())) >= 4
    for field in INDEXED:
        assert list(db.sql(f"SELECT id FROM t WHERE {field} IS NULL")) == [(1,)]
        ordered = [row for row, in db.sql(f"SELECT id FROM t ORDER BY {field}")]
        assert ordered[0] == 1
        assert list(db.sql(f"SELECT count(*) FROM t a JOIN t b ON a.{field} = b.{field}"))[0] >= (2,)


def test_transactions(db):
    with db.write() as tx:
        tx.t.update(1, n=12)
        assert tx.t[1].f4 is None and tx.t.by_f4.get(None).id == 1
        tx.t.update(0, f4="z")
        # What was erased may be set again, and not be erased by hand.
        tx.t.update(1, f4="new")
        with pytest.raises(annals.errors.Invalid):
            tx.t.update(1, f4=None)
    assert (db.t[1].f4, db.t[1].f1, db.t[1].n) == ("new", None, 12)
    txid = db.read().txid
    with db.write() as tx:
        with pytest.raises(annals.errors.Conflict, match="row 1, field `f4`: its value was erased"):
            tx.revert(txid)
        tx.t.upsert("id", id=0, n=7)
        tx.t.delete(1)
    assert (db.t[0].n, db.t[0].f4, 1 in db.t) == (7, "z", False)
    assert db.at(txid).t[1].f1 is None
