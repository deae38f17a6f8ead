"""The guide's programs for web frameworks and asyncio, and a notebook whose cell fails."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import threading
import time
import urllib.error
import urllib.request

import annals
import pytest

CLIENTS, REQUESTS = 8, 48


def blocks(heading):
    """Returns the Python below a heading of the guide's chapter."""
    folder = os.environ.get("ANNALS_GUIDE")
    if folder is None:
        pytest.skip("ANNALS_GUIDE isn't set: it is the folder of the guide's chapters")
    with open(os.path.join(folder, "python.md"), encoding="utf-8") as chapter:
        section = chapter.read().split(f"### {heading}\n")[1].split("\n#")[0]
    return "\n".join(block.split("```")[0] for block in section.split("```python service\n")[1:])


def ask(url, method="POST"):
    """Returns the status of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def store_all(url):
    """Asks for rows, by several clients at once; each failing request is an error, too."""
    def request(n):
        return ask(f"{url}/cities/{'' if n % 6 else 'twice-'}{n}")

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(request, range(REQUESTS)))


def run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "service"}
    exec(compile(code, "python.md", "exec"), names)
    return names


def expect_all(names, statuses):
    db = names["db"]
    stored = {row.name for row in db.city}
    assert set(statuses) == {200} and len(stored) == REQUESTS
    # The one that is there already is refused, and the next one stored.
    return db


@contextlib.contextmanager
def serving_fastapi(tmp_path, monkeypatch):
    """Runs the guide's program; gives its names and its address."""
    pytest.importorskip("fastapi")
    uvicorn = pytest.importorskip("uvicorn")
    names = run(blocks("FastAPI"), tmp_path, monkeypatch)
    config = uvicorn.Config(names["app"], host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield names, "http://127.0.0.1:%d" % server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def test_fastapi(tmp_path, monkeypatch):
    with serving_fastapi(tmp_path, monkeypatch) as (names, url):
        db = expect_all(names, store_all(url))
        assert ask(f"{url}/cities/1") == 409
        assert ask(f"{url}/cities/again") == 200
        assert ask(f"{url}/cities/again", "GET") == 200
        assert len(db.city) == REQUESTS + 1
    with pytest.raises(annals.errors.Closed):
        db.read()


def test_of_clients_that_insert_the_same_key_one_wins_and_the_others_hear_why(tmp_path, monkeypatch):
    rounds, together = 12, threading.Barrier(CLIENTS)

    def insert(url):
        answers = []
        for name in range(rounds):
            together.wait(30)
            request = urllib.request.Request(f"{url}/cities/same-{name}", method="POST")
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    answers.append((answer.status, json.load(answer)))
            except urllib.error.HTTPError as error:
                answers.append((error.code, json.load(error)))
        return answers

    with serving_fastapi(tmp_path, monkeypatch) as (names, url):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            by_client = [answers.result() for answers in [pool.submit(insert, url) for _ in range(CLIENTS)]]
        db = names["db"]
        for name, answers in enumerate(zip(*by_client)):
            row = db.city.by_name[f"same-{name}"]
            assert sorted(status for status, _ in answers) == [200] + [409] * (CLIENTS - 1), answers
            for status, said in answers:
                if status == 200:
                    assert said == {"id": row.id}
                else:
                    assert f"same-{name}" in said["error"] and f"row {row.id}" in said["error"], said
            # The losers left nothing, also in history.
            assert [version.kind for version in db.history("city", row.id)] == ["insert"]
        assert len(db.city) == rounds
        assert list(db.sql("SELECT kind, count(*) FROM city_history GROUP BY kind")) == [("insert", rounds)]
        assert ask(f"{url}/cities/after") == 200


def test_flask(tmp_path, monkeypatch):
    pytest.importorskip("flask")
    serving = pytest.importorskip("werkzeug.serving")
    names = run(blocks("Flask"), tmp_path, monkeypatch)
    server = serving.make_server("127.0.0.1", 0, names["app"], threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        db = expect_all(names, store_all(url))
        assert ask(f"{url}/cities/1") == 409
        assert ask(f"{url}/cities/again") == 200
        assert len(db.city) == REQUESTS + 1
    finally:
        server.shutdown()
        thread.join()
    db.close()


def test_asyncio(tmp_path, monkeypatch):
    names = run(blocks("asyncio"), tmp_path, monkeypatch)
    assert asyncio.run(asyncio.wait_for(names["main"](), 30)) == [f"city {i:02}" for i in range(20)]


def test_a_notebook_whose_cell_failed(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import annals\ndb = annals.in_memory('create_table t\\nadd_field t n int64\\n')",
        # `with` ends it.
        "with db.write() as tx:\n    tx.t.insert(n=1)\n    1 / 0",
        "with db.write() as tx:\n    tx.t.insert(n=2)\nprint(len(db.t))",
        # A variable has it.
        "tx = db.write()\ntx.t.insert(n=3)\n1 / 0",
        "db.write()",
        "tx.commit()\nprint(len(db.t))",
        # Only the exception has it.
        "def work():\n    mine = db.write()\n    mine.t.insert(n=4)\n    1 / 0\nwork()",
        "db.write()",
        "with db.write() as tx:\n    tx.t.insert(n=5)\nprint([row.n for row in db.t])",
        "import annals\ntry:\n    db = annals.open('a.annals')\n    db = annals.open('a.annals')\n"
        "except annals.errors.Busy as error:\n    print(error)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True, resources=resources).execute()

    def said(cell):
        return "".join(output.get("text", "") or output.get("evalue", "") for output in notebook.cells[cell].outputs)

    assert said(1) == said(3) == said(6) == "division by zero"
    assert said(2) == "1\n" and "end it first" in said(4) and said(5).endswith("2\n")
    assert "an exception keeps it" in said(7) and said(8) == "[2, 3, 5]\n"
    assert "share that handle" in said(9)
