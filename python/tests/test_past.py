"""The past: its tables and fields of then, what other processes commit, copies, checks, and what is forgotten."""

import os
import subprocess
import sys

import annals
import pytest

FIRST = "create_table t\nadd_field t a int64\nadd_field t b string\ncreate_table gone\nadd_field gone x int64\n"
SECOND = FIRST + "add_field t c int64 default 7\ndrop_field t b\ndrop_table gone\nrename_field t a aa\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.annals"


def test_the_past_as_it_was(path):
    with annals.open(path, schema=FIRST) as db:
        with db.write(comment="one") as tx:
            tx.t.insert(a=1, b="x")
            tx.gone.insert(x=5)
        with db.write() as tx:
            tx.t.update(0, b="y")
        last = db.read().txid
    with annals.open(path, schema=SECOND) as db:
        with db.write() as tx:
            tx.t.update(0, aa=2)
        assert dict(db.at("comment:one").t[0]) == {"aa": 1, "c": 7}
        then = db.as_it_was("comment:one")
        assert then.tables == ["t", "gone"] and "add_field t b string" in then.schema
        assert dict(then.t[0]) == {"a": 1, "b": "x"} and then.gone[0].x == 5
        assert dict(db.as_it_was(last).t[0]) == {"a": 1, "b": "y"}
        assert dict(db.as_it_was(db.read().txid).t[0]) == dict(db.t[0]) == {"aa": 2, "c": 7}
        assert db.as_it_was(0).tables == []
        for wrong in [99, "comment:nothing", 1.5]:
            with pytest.raises(annals.Error):
                db.as_it_was(wrong)
        pl = pytest.importorskip("polars")
        assert pl.DataFrame(then.t).to_dicts() == [{"id": 0, "a": 1, "b": "x"}]
    with annals.open(path, read_only=True) as db:
        assert db.as_it_was("comment:one").t[0].b == "x"
    # What was read stays.
    assert then.gone[0].x == 5


def test_a_reader_sees_what_others_commit_in_each_call(path):
    with annals.open(path, schema=FIRST) as db, annals.open(path, read_only=True) as reader:
        uses = [lambda name, txid, id: reader.at(f"comment:{name}").txid == txid,
                lambda name, txid, id: reader.at(txid).txid == txid,
                lambda name, txid, id: reader.txid_of(f"comment:{name}") == txid,
                lambda name, txid, id: reader.as_it_was(f"comment:{name}").txid == txid,
                lambda name, txid, id: reader.history("t", id)[0].comment == name,
                lambda name, txid, id: reader.blame("t", id)[0].comment == name,
                lambda name, txid, id: len(reader.diff(txid - 1)) == 1,
                lambda name, txid, id: len(reader.sql("SELECT * FROM t")) == id + 1,
                lambda name, txid, id: len(reader.t) == id + 1]
        for number, use in enumerate(uses):
            with db.write(comment=f"number {number}") as tx:
                assert tx.t.insert(a=number, b="") == number
            assert use(f"number {number}", tx.txid, number), number


def test_copies_checks_and_progress(path, tmp_path):
    with annals.open(path, schema=FIRST) as db:
        with db.write(soft=True) as tx:
            tx.t.insert_all({"a": i, "b": "x" * 100} for i in range(20_000))
        seen = []
        assert db.backup(tmp_path / "copy.annals", progress=lambda done, total: seen.append((done, total))) == tx.txid
        assert seen and all(0 <= done <= total for done, total in seen) and seen == sorted(seen)
        with pytest.raises(annals.Error, match="already"):
            db.backup(tmp_path / "copy.annals")

        def stop(done, total):
            raise RuntimeError("of the program")

        with pytest.raises(RuntimeError, match="of the program"):
            db.backup(tmp_path / "another.annals", progress=stop)
        assert not (tmp_path / "another.annals").exists()
    with annals.open(tmp_path / "copy.annals", read_only=True) as copy:
        assert len(copy.t) == 20_000
    counts = annals.check(tmp_path / "copy.annals")
    assert counts["rows"] == 20_000 and counts["tables"] == 2 and counts["transactions"] == tx.txid
    content = bytearray((tmp_path / "copy.annals").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged.annals").write_bytes(content)
    with pytest.raises(annals.errors.Corrupt, match="damaged.annals"):
        annals.check(tmp_path / "damaged.annals")
    with annals.in_memory() as db, pytest.raises(annals.errors.Invalid, match="only a file"):
        db.backup(tmp_path / "third.annals")


def test_retention(path):
    with annals.open(path, schema=FIRST, keep_transactions=10**6, keep_days=0.5, keep_bytes=10**9) as db:
        db.write().commit()
    for wrong in [{"keep_days": -1}, {"keep_days": float("nan")}, {"keep_bytes": -1}, {"keep_transactions": True}]:
        ((name, _),) = wrong.items()
        with pytest.raises(annals.errors.Invalid, match=f"{name}: write a .*number"):
            annals.open(path, **wrong)


def test_compressed_files_are_read(path, tmp_path):
    program = os.environ.get("ANNALS_PROGRAM")
    if program is None:
        pytest.skip("ANNALS_PROGRAM isn't set: it is the program annals")
    with annals.open(path, schema=FIRST) as db, db.write() as tx:
        tx.t.insert_all({"a": i, "b": "x" * 100} for i in range(1000))
    small = tmp_path / "small.annals"
    subprocess.run([program, "convert", path, small, "--compress"], check=True, stdout=subprocess.PIPE)
    assert small.stat().st_size < path.stat().st_size
    with annals.open(small, read_only=True) as db:
        assert len(db.t) == 1000


def test_far_dates_of_other_programs(path):
    program = os.environ.get("ANNALS_PROGRAM")
    if program is None:
        pytest.skip("ANNALS_PROGRAM isn't set: it is the program annals")
    script = "create_table t\nadd_field t s string\nadd_field t d date null\ninsert t a 2020-01-01\ncommit\n" \
        "insert t b +12345-01-01\ncommit\ninsert t c 2021-01-01\ncommit\n"
    subprocess.run([program, "shell", path], input=script, text=True, check=True, stdout=subprocess.PIPE)
    with annals.open(path, read_only=True) as db:
        assert [row.s for row in db.t] == ["a", "b", "c"]
        feed = db.subscribe(after=1)
        rows = []
        while commit := feed.next(timeout=1):
            rows += [change.new["s"] for change in commit.rows]
        assert rows[-2:] == ["b", "c"]


def test_sql_opens_no_other_files(tmp_path):
    with annals.in_memory("create_table t\nadd_field t n int64\n") as db:
        for statement in ["ATTACH '{}' AS z", "VACUUM INTO '{}'", "ATTACH ':memory:' AS z; CREATE TABLE z.t(a)"]:
            with pytest.raises(annals.Error):
                db.sql(statement.format(tmp_path / "z.db"))
        assert os.listdir(tmp_path) == []
        with pytest.raises(annals.Error, match="brn"):
            db.sql('SELECT "brn" FROM t')


def test_subscriptions_that_come_and_go_keep_no_memory():
    code = """
import annals, gc
def memory():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096
db = annals.in_memory("create_table t\\nadd_field t n int64\\n")
db.subscribe().close()
before = memory()
for _ in range(50_000):
    db.subscribe().close()
assert memory() - before < 4e6, memory() - before
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("there is no /proc")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_feed_keeps_its_place_after_an_error(path):
    with annals.open(path, schema=FIRST) as db:
        feed = db.subscribe()
        for n in range(3):
            with db.write() as tx:
                tx.t.insert(a=n, b="")
        with pytest.raises(annals.errors.Invalid, match="timeout"):
            feed.next(timeout=-1)
        assert [feed.next(timeout=5).rows[0].new["a"] for _ in range(3)] == [0, 1, 2]
        feed.close()
        assert feed.next() is None and list(feed) == []
