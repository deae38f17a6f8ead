"""Writing with other processes, and calls that a signal ends."""

import itertools
import signal
import threading
import time
from uuid import UUID

import annals
import pytest

SCHEMA = "create_table t\nadd_field t n int64\nadd_field t u uuid null\n"


class Interrupted(BaseException):
    pass


@pytest.fixture
def alarm():
    """Sets an alarm, which raises in the main thread."""
    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def handles(tmp_path):
    """Two handles of a file, as two processes have."""
    path = tmp_path / "shared.annals"
    with annals.open(path, schema=SCHEMA, shared=True) as one, annals.open(path, shared=True) as other:
        yield one, other


def test_the_timeout_of_write_is_kept(handles):
    one, other = handles
    with one.write() as tx:
        for timeout in [0, 0.3]:
            start = time.monotonic()
            with pytest.raises(annals.errors.Busy, match="timeout="):
                other.write(timeout=timeout)
            assert timeout <= time.monotonic() - start < timeout + 5
        tx.t.insert(n=1)
    with other.write(timeout=0) as tx:
        tx.t.insert(n=2)
    assert [row.n for row in one.t] == [1, 2]


def test_a_timeout_may_be_longer_than_the_usual_one(handles):
    one, other = handles
    tx = one.write()
    ending = threading.Timer(10.5, tx.rollback)
    ending.start()
    other.write(timeout=60).rollback()
    ending.join()


def test_a_write_that_was_interrupted_holds_nothing(handles, alarm):
    one, other = handles
    tx = one.write()
    for _ in range(3):
        start = time.monotonic()
        alarm(0.2)
        with pytest.raises(Interrupted):
            other.write()
        assert time.monotonic() - start < 5
        with pytest.raises(annals.errors.Busy, match="other processes"):
            other.write(timeout=0.2)
    tx.rollback()
    with other.write(timeout=5) as tx:
        tx.t.insert(n=1)
    assert len(one.t) == 1


def test_a_signal_at_the_end_of_a_call_leaves_the_transaction_usable(alarm, monkeypatch):
    reading, go_on, made = threading.Event(), threading.Event(), UUID.__init__

    def slow(self, *given, **named):
        reading.set()
        assert go_on.wait(20)
        made(self, *given, **named)

    def rows():
        yield {"n": 2}
        monkeypatch.setattr(UUID, "__init__", slow)
        reader.start()
        assert reading.wait(20)
        threading.Timer(1, go_on.set).start()
        alarm(0.2)

    with annals.in_memory(SCHEMA) as db:
        tx = db.write()
        tx.t.insert(n=1, u=UUID(int=7))
        reader = threading.Thread(target=lambda: tx.t[0])
        with pytest.raises(Interrupted):
            tx.t.insert_all(rows())
        reader.join(20)
        tx.t.insert(n=3)
        tx.commit()
        assert [row.n for row in db.t] == [1, 2, 3]


def test_a_list_of_rows_is_ended_by_a_signal(alarm):
    db = annals.in_memory(SCHEMA)
    with db.write() as tx:
        tx.t.insert_all({"n": n} for n in range(50_000))
    rows = iter(db.read().t)

    def begin():
        alarm(0.001)
        yield from ()

    with pytest.raises(Interrupted):
        # From then on no line of Python is run until it ends.
        list(itertools.chain(begin(), rows))
    assert next(rows, None) is not None


def test_a_server_that_does_not_answer_is_unreachable_soon():
    start = time.monotonic()
    with pytest.raises(annals.errors.Unreachable, match="127.0.0.1:1"):
        annals.open("http://127.0.0.1:1/v1/cities")
    assert time.monotonic() - start < 10
    for url in ["http://127.0.0.1:1/v1/cities", "http://127.0.0.1:1/cities.annals"]:
        with pytest.raises(annals.errors.Invalid, match="the token"):
            annals.open(url, token="a\nb")


def test_sql_sees_what_others_have_committed(handles):
    one, other = handles
    with other.write() as tx:
        tx.t.insert(n=1)
    assert list(one.sql("SELECT n FROM t")) == [(1,)]
    with one.write() as tx:
        tx.t.insert(n=2)
        # Nobody else writes meanwhile, and the transaction isn't waited for.
        assert list(one.sql("SELECT n FROM t")) == [(1,)]


def test_a_subscription_has_the_blobs_of_others(tmp_path):
    path = tmp_path / "shared.annals"
    schema = "create_table t\nadd_field t b blob\n"
    with annals.open(path, schema=schema, shared=True) as one, annals.open(path, shared=True) as other:
        feed = one.subscribe()
        for blob in [b"one", b"two"]:
            with other.write() as tx:
                tx.t.insert(b=blob)
        assert [feed.next(timeout=5).rows[0].new["b"] for _ in range(2)] == [b"one", b"two"]


def test_who_has_an_older_schema_is_told_by_every_call(tmp_path):
    path = tmp_path / "shared.annals"
    schema = "create_table t\nadd_field t n int64\nadd_field t m int64\n"
    with annals.open(path, schema=schema, shared=True) as one:
        with one.write() as tx:
            tx.t.insert(n=1, m=2)
        feed, reader = one.subscribe(), annals.open(path, schema=schema, read_only=True)
        with annals.open(path, schema=schema + "drop_field t m\n", shared=True) as other, other.write() as tx:
            tx.t.insert(n=3)
        calls = [lambda: feed.next(timeout=5), lambda: one.sql("SELECT m FROM t"), reader.read]
        for call in calls:
            with pytest.raises(annals.errors.SchemaMismatch, match="upgraded the schema"):
                call()
