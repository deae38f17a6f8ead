"""Transactions and threads: any thread may use and end a transaction, and none waits for itself."""

import asyncio
import concurrent.futures
import contextvars
import gc
import signal
import subprocess
import sys
import threading
import time

import annals
import pytest

SCHEMA = "create_table t\nadd_field t n int64\n"


@pytest.fixture
def db():
    with annals.in_memory(SCHEMA) as db:
        yield db


def elsewhere(work):
    """Does work in a new thread; returns its result."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=20)


def numbers(db):
    return [row.n for row in db.t]


def test_each_call_of_a_transaction_may_come_from_another_thread(db):
    tx = elsewhere(db.write)
    elsewhere(lambda: tx.t.insert(n=1))
    elsewhere(lambda: tx.t.update(0, n=2))
    assert elsewhere(lambda: tx.t[0].n) == 2
    point = elsewhere(lambda: tx.savepoint().__enter__())
    elsewhere(lambda: tx.t.insert(n=3))
    elsewhere(lambda: point.rollback())
    assert elsewhere(tx.commit) == tx.txid
    assert numbers(db) == [2]


def test_threads_share_an_iterator_while_another_uses_the_transaction(db):
    """In a process of its own: where they wait for each other, no thread of it runs any more."""
    script = f"""
import threading, annals
with annals.in_memory({SCHEMA!r}) as db:
    with db.write() as tx:
        tx.t.insert_all({{"n": n}} for n in range(20_000))
    tx = db.write()
    rows = iter(tx.t)
    assert next(rows).id == 0
    seen = []
    threads = [threading.Thread(target=tx.revert, args=[db.read().txid])]
    threads += [threading.Thread(target=lambda: seen.extend(row.id for row in rows)) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    tx.rollback()
    assert len(seen) == len(set(seen)) < 20_000
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("end", ["commit", "rollback", "__exit__"])
def test_the_transaction_of_a_dead_thread_can_be_ended(db, end):
    tx = elsewhere(db.write)
    tx.t.insert(n=1)
    getattr(tx, end)()
    with db.write(timeout=5) as tx:
        tx.t.insert(n=2)
    assert numbers(db) == ([2] if end == "rollback" else [1, 2])


def test_a_transaction_that_another_thread_frees_is_rolled_back(db):
    def work():
        tx = db.write()
        tx.t.insert(n=1)
        raise ValueError("it keeps the frame, and with it the transaction")

    with pytest.raises(ValueError):
        elsewhere(work)
    gc.collect()
    elsewhere(lambda: db.write(timeout=5).commit())
    elsewhere(db.close)


def test_a_transaction_in_a_cycle_is_freed_by_who_waits(db):
    class Keeper:
        pass

    def work():
        keeper = Keeper()
        keeper.itself, keeper.tx = keeper, db.write()

    gc.disable()
    try:
        elsewhere(work)
        db.write(timeout=20).rollback()
    finally:
        gc.enable()


def test_threads_write_one_after_the_other(db):
    def work(number):
        for i in range(50):
            with db.write(soft=True) as tx:
                tx.t.insert(n=100 * number + i)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(numbers(db)) == sorted(100 * number + i for number in range(4) for i in range(50))


def test_threads_may_use_one_transaction_at_once(db):
    with db.write() as tx, concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: tx.t.insert(n=n), range(200)))
    assert sorted(numbers(db)) == list(range(200))


def test_a_second_transaction_of_a_thread_is_an_error(db):
    with db.write() as tx:
        with pytest.raises(annals.errors.Invalid, match="savepoint"):
            db.write()
        with pytest.raises(annals.errors.Invalid, match="savepoint"):
            db.close()
        tx.t.insert(n=1)
    assert numbers(db) == [1]


def test_transactions_of_two_databases_may_be_open_at_once(db):
    with annals.in_memory(SCHEMA) as other, db.write() as first, other.write() as second:
        first.t.insert(n=1)
        second.t.insert(n=2)
        with pytest.raises(annals.errors.Invalid, match="savepoint"):
            other.write()
    assert numbers(db) == [1]


@pytest.mark.parametrize("wait", ["write", "close"])
def test_nobody_waits_for_ever_for_a_transaction_that_nobody_uses(db, wait):
    # Another thread used it last, and lives: nothing else tells that it won't end it.
    tx = db.write()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(tx.t.insert, n=1).result()
        start = time.monotonic()
        with pytest.raises(annals.errors.Busy, match="nobody has used it for 10 seconds.*timeout"):
            getattr(db, wait)()
        assert 9 < time.monotonic() - start < 30
        tx.commit()
    assert numbers(db) == [1]
    getattr(db, wait)()


def test_waiting_goes_on_while_the_transaction_is_used(db):
    def work():
        with db.write() as tx:
            begun.set()
            for n in range(30):
                tx.t.insert(n=n)
                time.sleep(0.4)

    begun = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        assert begun.wait(20)
        db.write().rollback()
        assert len(db.t) == 30
        working.result(timeout=20)


def test_waiting_ends_at_the_timeout(db):
    tx = elsewhere(db.write)
    for timeout in [0, 0.2]:
        start = time.monotonic()
        with pytest.raises(annals.errors.Busy, match="timeout"):
            db.write(timeout=timeout)
        assert timeout <= time.monotonic() - start < timeout + 5
    for wrong in [-1, float("nan"), 1e300]:
        with pytest.raises(annals.errors.Invalid, match="timeout"):
            db.write(timeout=wrong)
    tx.rollback()
    db.write(timeout=0).rollback()


def test_a_thread_of_a_pool_waits_for_a_transaction_that_it_began_for_another_request(db):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        tx = pool.submit(contextvars.Context().run, db.write).result()
        waiting = pool.submit(contextvars.Context().run, db.write)
        time.sleep(0.2)
        assert not waiting.done()
        tx.rollback()
        waiting.result(timeout=20).rollback()


def test_closing_waits_for_the_transaction_of_another_thread(db):
    tx = elsewhere(db.write)
    tx.t.insert(n=1)
    closing = threading.Thread(target=db.close)
    closing.start()
    time.sleep(0.2)
    assert closing.is_alive()
    elsewhere(tx.commit)
    closing.join(20)
    assert not closing.is_alive()
    with pytest.raises(annals.errors.Closed):
        db.read()


def test_tasks_of_an_event_loop(db):
    async def wrong():
        with db.write() as tx:
            await asyncio.sleep(0.01)
            tx.t.insert(n=0)

    async def write(n):
        def work():
            with db.write() as tx:
                tx.t.insert(n=n)

        await asyncio.to_thread(work)

    async def main():
        results = await asyncio.gather(*(wrong() for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results].count(annals.errors.Invalid) == 2
        assert "asyncio.to_thread" in str([result for result in results if result][0])
        await asyncio.gather(*map(write, range(1, 20)))

    asyncio.run(asyncio.wait_for(main(), 20))
    assert sorted(numbers(db)) == list(range(20))


def test_other_threads_run_and_signals_are_seen_while_a_call_works(db):
    with db.write() as tx:
        tx.t.insert_all({"n": i} for i in range(30_000))
    with db.write() as tx:
        for i in range(30_000):
            tx.t.update(i, n=-i)
    txid, ticks, seen, over = db.read().txid, [], [], threading.Event()

    def tick():
        while not over.wait(0.002):
            ticks.append(time.monotonic())

    threading.Thread(target=tick).start()
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    try:
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with db.write() as tx:
            tx.revert(txid)
        took = time.monotonic() - start
    finally:
        signal.signal(signal.SIGALRM, before)
        over.set()
    assert numbers(db) == list(range(30_000))
    during = [at for at in ticks if start < at < start + took]
    assert len(during) > 3 and seen, (took, len(during))
