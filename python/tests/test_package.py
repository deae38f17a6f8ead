"""What the package does, seen from outside."""

import asyncio
import doctest
import importlib.metadata
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

sys.path.insert(0, os.path.dirname(__file__))

import annals
import annals._subscription
import pytest

CITY = "create_table city\nadd_field city name string\nadd_field city size int64 null\ncreate_unique_index city_by_name city name\n"
ALL = """create_table town
add_field town name string
create_table all
add_field all i8 int8
add_field all u64 uint64 null
add_field all f32 float32
add_field all f64 float64 null
add_field all ok bool
add_field all text string null
add_field all raw bytes null
add_field all four bytes(4) null
add_field all at timestamp null
add_field all day date null
add_field all key uuid null
add_field all price decimal(2) null
add_field all colour enum(red, green) null
add_field all doc json null
add_field all town references town
add_field all file blob
"""
ROWS = [
    dict(i8=-128, u64=2**64 - 1, f32=0.5, f64=-1e300, ok=True, text="é" * 40, raw=b"\x00\xff", four=b"abcd",
         at=datetime(1969, 12, 31, 23, 59, 59, 999999, timezone.utc), day=date(1, 1, 1), key=UUID(int=7),
         price=Decimal("-999.25"), colour="green", doc='{"a": [1]}', town=0, file=b"contents" * 99),
    dict(i8=127, u64=None, f32=0.0, f64=None, ok=False, text=None, raw=None, four=None, at=None, day=None, key=None,
         price=None, colour=None, doc=None, town=None, file=None),
]


@pytest.fixture
def db():
    with annals.in_memory(CITY) as db:
        yield db


def with_all_types():
    db = annals.in_memory(ALL)
    with db.write() as tx:
        tx.town.insert(name="Lille")
        for row in ROWS:
            tx.all.insert(**row)
    return db


def test_the_contract(tmp_path):
    path = tmp_path / "x.annals"
    with annals.open(path, schema=CITY) as db:
        with db.write(comment="first") as tx:
            tx.city.insert(name="Lille")
    db = annals.open(str(path))
    assert db.read().city[0].name == "Lille"
    db.close()
    with annals.open(path, schema=CITY + "add_field city motto string null\n") as db:
        assert db.city[0].motto is None
    with annals.open(path, read_only=True) as db, pytest.raises(annals.errors.Invalid):
        db.write()


def test_all_types_come_back():
    with with_all_types() as db:
        assert [row.asdict() for row in db.read().all] == ROWS


def test_all_types_go_through_arrow_and_back():
    pa = pytest.importorskip("pyarrow")
    with with_all_types() as db:
        table = pa.table(db.read().all)
        assert table.schema.field("price").type == pa.decimal128(38, 2)
        assert table.schema.field("at").type == pa.timestamp("us", "UTC")
        assert table["u64"].to_pylist() == [2**64 - 1, None]
        copy = annals.in_memory(ALL)
        with copy.write() as tx:
            tx.town.insert(name="Lille")
            assert tx.all.insert_all(table) == 2
        assert [row.asdict() for row in copy.read().all] == ROWS
        assert list(copy.read().all) == list(db.read().all)


def test_frames_need_no_pyarrow(db):
    pl = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    count = 5000
    with db.write() as tx:
        tx.city.insert_all({"name": f"city {i}", "size": i if i % 7 else None} for i in range(count))
        tx.city.delete(17)
    cities = db.read().city
    frame = pl.DataFrame(cities)
    assert frame["id"].to_list() == [i for i in range(count) if i != 17]
    assert frame["size"].to_list() == [row.size for row in cities]
    assert frame["name"].to_list() == [row.name for row in cities]
    assert duckdb.sql("select count(*), sum(size), max(name) from cities").fetchall()[0] == (
        count - 1, frame["size"].sum(), frame["name"].max())
    part = cities.by_name.prefix("city 49")
    assert pl.DataFrame(part)["name"].to_list() == [row.name for row in part]
    with annals.in_memory(CITY) as copy, copy.write() as tx:
        assert tx.city.insert_all(frame) == count - 1
        assert tx.city[4999].name == "city 4999"
    # Values live on when all else is gone.
    db.close()
    del cities, part
    assert frame["size"].sum() == sum(i for i in range(count) if i % 7 and i != 17)


def test_changes_are_an_arrow_stream(db):
    pl = pytest.importorskip("polars")
    with db.write(comment="a") as tx:
        tx.city.insert(name="Lile")
    with db.write() as tx:
        tx.city.update(0, name="Lille")
    frame = pl.DataFrame(db.read().city.changes())
    assert frame["kind"].to_list()[-2:] == ["insert", "update"]
    assert frame["old"].to_list()[-1]["name"] == "Lile"
    assert frame["new"].to_list()[-1]["name"] == "Lille"


def test_changes_can_be_asked_for_again(db):
    duckdb, pl, pa = (pytest.importorskip(name) for name in ["duckdb", "polars", "pyarrow"])
    with db.write() as tx:
        tx.city.insert(name="Metz")
    changes = db.read().city.changes()
    with db.write() as tx:
        tx.city.insert(name="Nice")
    assert duckdb.sql("SELECT count(*) FROM changes").fetchall() == duckdb.sql("SELECT count(*) FROM changes").fetchall()
    assert duckdb.sql("SELECT new.name FROM changes").fetchall()[-1] == ("Metz",)
    for _ in range(2):
        assert pl.DataFrame(changes)["new"].struct.field("name").to_list()[-1] == "Metz"
    assert pa.table(changes).schema == pa.schema(changes)


def test_wrong_streams_are_errors(db):
    pl = pytest.importorskip("polars")
    for frame, text in [({"nam": ["x"]}, "no field"), ({"name": [1]}, "field `name`"),
                        ({"name": ["a"], "size": [0.5]}, "field `size`")]:
        with pytest.raises(annals.errors.Invalid, match=text), db.write() as tx:
            tx.city.insert_all(pl.DataFrame(frame))
    for ids, text in [(pl.Series([0]), "Series: .*to_list"), (pl.DataFrame({"id": [-1]}), "-1 isn't the id of a row$")]:
        with pytest.raises(annals.errors.Invalid, match=text), db.write() as tx:
            tx.city.delete_all(ids)
    assert len(db.city) == 0


def test_errors_are_a_tree(db):
    with db.write() as tx:
        tx.city.insert(name="Lille")
    with pytest.raises(annals.Error) as caught, db.write() as tx:
        tx.city.insert(name="Lille")
    assert isinstance(caught.value, annals.errors.Unique) and caught.value.kind == "unique"
    with pytest.raises(KeyError, match="no row 9"):
        db.city[9]
    with pytest.raises(AttributeError):
        db.read().nothing
    with pytest.raises(ValueError), db.write() as tx:
        tx.city.insert(name=5)
    with pytest.raises(ValueError, match="time zone"):
        db.write(time=datetime(2020, 1, 1))
    with db.write() as tx:
        with pytest.raises(annals.errors.Invalid, match="savepoint"):
            db.write()
    with pytest.raises(annals.errors.Invalid, match="over"):
        tx.commit()


def test_savepoints_and_rollback(db):
    with db.write() as tx:
        tx.city.insert(name="a")
        with pytest.raises(RuntimeError):
            with tx.savepoint():
                tx.city.insert(name="b")
                raise RuntimeError
        tx.city.insert(name="c")
    assert [row.name for row in db.city] == ["a", "c"]
    with pytest.raises(RuntimeError), db.write() as tx:
        tx.city.delete(0)
        raise RuntimeError
    assert len(db.city) == 2


def test_random_operations_equal_a_model(db):
    seed = random.Random(5)
    model, states = {}, {}
    for step in range(300):
        try:
            with db.write() as tx:
                trial = dict(model)
                for _ in range(seed.randrange(1, 6)):
                    kind = seed.randrange(4)
                    name = f"n{seed.randrange(60)}"
                    if kind <= 1:
                        id = tx.city.insert(name=name, size=step)
                        trial[id] = (name, step)
                    elif kind == 2 and trial:
                        id = seed.choice(list(trial))
                        tx.city.update(id, name=name)
                        trial[id] = (name, trial[id][1])
                    elif trial:
                        id = seed.choice(list(trial))
                        tx.city.delete(id)
                        del trial[id]
                if len({name for name, _ in trial.values()}) < len(trial):
                    expect_unique = True
                else:
                    expect_unique = False
            assert not expect_unique
            model = trial
            states[db.read().txid] = trial
        except annals.errors.Unique:
            pass
        assert {row.id: (row.name, row.size) for row in db.city} == model
    for txid, state in seed.sample(sorted(states.items()), 20):
        assert {row.id: (row.name, row.size) for row in db.at(txid).city} == state
    for id, (name, size) in model.items():
        assert db.city.by_name[name].id == id
        assert db.history("city", id)[-1].new == {"name": name, "size": size}


def test_the_past(db):
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    with db.write(comment="one") as tx:
        tx.city.insert(name="Lile")
    with db.write(comment="two") as tx:
        tx.city.update(0, name="Lille")
    assert db.at("comment:one").city[0].name == "Lile"
    assert len(db.at(before).city) == 0 if db.read().txid > 3 else True
    (change,) = db.diff(db.txid_of("comment:one"))
    assert (change.table, change.id, change.old["name"], change.new["name"]) == ("city", 0, "Lile", "Lille")
    assert [(blame.field, blame.comment) for blame in db.blame("city", 0)] == [("name", "two"), ("size", "one")]
    with db.write() as tx:
        tx.revert(db.txid_of("comment:two"))
    assert db.city[0].name == "Lile"


def test_sql(tmp_path):
    with with_all_types() as db:
        answer = db.sql("SELECT * FROM \"all\" WHERE i8 = :i", {"i": -128})
        assert answer.columns[:3] == ["id", "i8", "u64"] and len(answer) == 1
        assert answer[0][:3] == answer[-1][:3] == (0, -128, 2**64 - 1)
        with pytest.raises(IndexError):
            answer[1]
        row = ROWS[0]
        for field in ["u64", "f64", "ok", "text", "raw", "at", "day", "key", "price", "colour"]:
            query = f"SELECT count(*) FROM \"all\" WHERE {field} = ?"
            assert list(db.sql(query, [row[field]])) == [(1,)], field
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame(db.sql("SELECT i8, u64, at, text, ok, i8 / 2.0 AS half FROM \"all\""))
        assert frame.rows()[0] == (-128, 2**64 - 1, row["at"], row["text"], True, -64.0)
        mixed = db.sql("SELECT CASE i8 WHEN 127 THEN 'a' ELSE 1 END AS mixed FROM \"all\"")
        assert list(mixed) == [(1,), ("a",)]
        with pytest.raises(Exception, match="CAST"):
            pl.DataFrame(mixed)
        for wrong, params in [("SELEC 1", None), ("SELECT ?", []), ("SELECT 1", [1]), ("SELECT ?", [object()]),
                              ("SELECT ?", "a"), ("SELECT ?", [2**64]), ("SELECT CAST(x'ff' AS TEXT)", None)]:
            with pytest.raises(annals.errors.Invalid):
                db.sql(wrong, params)
        with pytest.raises(annals.Error, match="read"):
            db.sql("DELETE FROM town")
        assert list(db.sql("")) == []
    with pytest.raises(annals.errors.Closed):
        db.sql("SELECT 1")
    annals.open(tmp_path / "a.annals", schema=CITY).close()
    with annals.open(tmp_path / "a.annals", read_only=True) as db:
        assert list(db.sql("SELECT count(*) FROM city")) == [(0,)]


def test_a_database_on_a_server(tmp_path):
    program = os.environ.get("ANNALS_PROGRAM")
    if program is None:
        pytest.skip("ANNALS_PROGRAM isn't set: it is the program annals")
    path = tmp_path / "a.annals"
    with annals.open(path, schema=CITY) as db, db.write(comment="first") as tx:
        tx.city.insert_all({"name": f"city {i}", "size": i} for i in range(1000))
    server = subprocess.Popen([program, "serve", path, "--listen", "127.0.0.1:0", "--no-token"],
                              stdout=subprocess.PIPE, text=True)
    try:
        line = next(line for line in server.stdout if line.startswith("listening on "))
        url = line.split()[2] + "/v1/a"
        with annals.open(url) as db:
            assert db.city.by_name["city 7"].size == 7 and len(db.read().city) == 1000
            assert list(db.sql("SELECT sum(size) FROM city")) == [(499500,)]
            assert len(db.at("comment:first").city) == 1000
            assert db.history("city", 7)[0].new["name"] == "city 7"
            with pytest.raises(annals.errors.Invalid, match="URL"):
                db.write()
        with pytest.raises(annals.errors.Invalid, match="schema"):
            annals.open(url, schema=CITY)
        with pytest.raises(annals.Error):
            annals.open(url + "b")
    finally:
        server.kill()
        server.wait()


def test_subscriptions(db):
    feed = db.subscribe()
    assert feed.next(timeout=0) is None
    with db.write(comment="x") as tx:
        tx.city.insert(name="a")
    assert next(feed).rows[0].new["name"] == "a"

    async def follow():
        async for commit in db.subscribe(after=db.read().txid - 1):
            return commit.comment
        return None

    assert asyncio.run(follow()) == "x"
    threading.Timer(0.1, db.close).start()
    assert list(feed) == []


def test_iterating_goes_on_after_close(db):
    with db.write() as tx:
        tx.city.insert_all({"name": str(i)} for i in range(10))
    rows = iter(db.city)
    next(rows)
    snapshot = db.read()
    db.close()
    assert len(list(rows)) == 9 and len(snapshot.city) == 10
    with pytest.raises(annals.errors.Closed):
        db.read()
    with pytest.raises(annals.errors.Closed):
        db.write()
    db.close()


def test_handles_are_not_pickled(db):
    for thing in [db, db.read(), db.city, db.subscribe(), iter(db.city)]:
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def test_threads(db):
    def work(number):
        for i in range(50):
            with db.write(soft=True) as tx:
                tx.city.insert(name=f"{number}/{i}")
            len(db.city)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(db.city) == 200


def test_a_forked_child_gets_errors(tmp_path):
    db = annals.open(tmp_path / "a.annals", schema=CITY)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            refused = 0
            for ask in [db.write, db.read, db.close, lambda: db.city, lambda: db.tables, lambda: db.sql("SELECT 1"), lambda: db.at(1)]:
                try:
                    ask()
                except annals.errors.Poisoned as error:
                    refused += "open the database again in the child" in str(error)
            own = annals.in_memory(CITY)
            status = 0 if refused == 7 and list(own.sql("SELECT count(*) FROM city")) == [(0,)] else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    with db.write() as tx:
        tx.city.insert(name="parent")
    db.close()


def run(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], stdout=subprocess.PIPE)


def test_a_killed_writer_loses_nothing(tmp_path):
    path = tmp_path / "a.annals"
    code = """
        import sys, annals
        db = annals.open(sys.argv[1], schema=sys.argv[2])
        for i in range(len(db.city), 10**6):
            with db.write() as tx:
                tx.city.insert(name=str(i))
            print(i, flush=True)
    """
    last = -1
    for _ in range(3):
        child = run(code, path, CITY)
        for line in child.stdout:
            last = int(line)
            if last % 40 == 39:
                child.send_signal(signal.SIGKILL)
                break
        rest = [int(line) for line in child.stdout.read().split()]
        child.wait()
        last = max([last, *rest])
        with annals.open(path) as db:
            assert last < len(db.city) <= last + 2
            last = len(db.city) - 1


def test_ctrl_c_ends_a_wait():
    code = """
        import annals, sys, threading
        db = annals.in_memory(sys.argv[1])
        feed = db.subscribe()
        print("ready", flush=True)
        try:
            if sys.argv[2] == "feed":
                next(feed)
            elif sys.argv[2] == "sql":
                db.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
            else:
                opened, done = threading.Event(), threading.Event()
                def hold():
                    tx = db.write()
                    opened.set()
                    done.wait()
                    tx.rollback()
                threading.Thread(target=hold, daemon=True).start()
                opened.wait()
                db.write()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            import os
            os._exit(0)
    """
    for what in ["feed", "write", "sql"]:
        child = run(code, CITY, what)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=20)[0] == b"interrupted\n"


@pytest.mark.parametrize("chapter", ["python", "parquet"])
def test_the_guide(chapter, tmp_path, monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    folder = os.environ.get("ANNALS_GUIDE")
    if folder is None:
        pytest.skip("ANNALS_GUIDE isn't set: it is the folder of the guide's chapters")
    monkeypatch.chdir(tmp_path)
    text, names = open(os.path.join(folder, f"{chapter}.md")).read(), {}
    blocks = text.split("```python\n")[1:]
    assert blocks
    for block in blocks:
        exec(compile(block.split("```")[0], chapter, "exec"), names)


def test_examples_of_docstrings():
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner()
    things = [annals, annals._subscription.Subscription, *(getattr(annals, name) for name in annals.__all__)]
    found = 0
    for thing in things:
        for example in finder.find(thing, getattr(thing, "__name__", "annals"), module=False):
            found += bool(example.examples)
            runner.run(example)
    assert runner.failures == 0 and found >= 4


def test_the_package_brings_its_licences_and_links_that_work_elsewhere():
    package = importlib.metadata.distribution("annals")
    licences = package.metadata.get_all("License-File")
    assert sorted(licences) == ["LICENSE-APACHE", "LICENSE-MIT"]
    texts = [file.read_text() for file in package.files if "licenses" in file.parts]
    assert len(texts) == 2 and any("Permission is hereby granted" in text for text in texts)
    assert "Repository" in str(package.metadata.get_all("Project-URL"))
    text = package.metadata.get_payload() or package.metadata["Description"]
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert links and all(link.startswith("https://") for link in links), links


def test_nothing_beside_the_source_hides_the_package():
    # A folder `annals` in `python/` would be imported there instead of the wheel.
    folder = os.path.join(os.environ["ANNALS_ROOT"], "python")
    program = "import annals; print(annals.__file__); annals.open"
    found = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0 and not found.stdout.startswith(folder), found.stdout + found.stderr
