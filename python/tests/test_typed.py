"""Modules that `annals compile --python` writes: what a checker says of them, and that they are the package at run time."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import annals
import pytest

HERE = pathlib.Path(__file__).parent


def given(name):
    if name not in os.environ:
        pytest.skip(f"{name} isn't set: python/test.sh sets it")
    return pathlib.Path(os.environ[name])


def checked(folder, *files):
    """Returns the messages of mypy, by file and line."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary", *files]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert not said.stderr, said.stderr
    found = {}
    for line in said.stdout.splitlines():
        place, _, message = line.partition(": error: ")
        if message:
            found.setdefault(place, []).append(message)
    return found


def compiled(folder, name, schema):
    """Compiles a schema to a module, and imports it."""
    (folder / f"{name}.schema").write_text(schema)
    command = [given("ANNALS_PROGRAM"), "compile", "--python", f"{name}.schema", "-o", f"{name}.py"]
    subprocess.run(command, cwd=folder, check=True)
    return loaded(name, folder / f"{name}.py")


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library():
    if not (HERE / "library.py").exists():
        pytest.skip("there is no library.py: python/test.sh compiles it")
    return loaded("library", HERE / "library.py")


def test_a_checker_finds_each_mistake_and_nothing_else(library):
    found = checked(HERE, "typed_mistakes.py")
    for number, line in enumerate((HERE / "typed_mistakes.py").read_text().splitlines(), 1):
        messages = found.pop(f"typed_mistakes.py:{number}", [])
        _, is_mistake, expected = line.partition("  # error: ")
        if is_mistake:
            assert any(expected in message for message in messages), (number, line, messages)
        else:
            assert not messages, (number, line, messages)
    assert not found


def test_a_module_gives_the_packages_own_objects(library, tmp_path):
    with library.open(tmp_path / "a.annals", soft=True) as db:
        assert type(db) is annals.Database
        with db.write() as tx:
            lille = tx.town.insert(name="Lille", height=28)
            sign = tx.road_sign.insert(colour="red", class_=3, town=lille)
            tx.road_sign.update(sign, class_=4)
        now = db.read()
        assert now.town.by_name["Lille"] == now.town[lille] and type(now.town[lille]) is annals.Row
        row = now.road_sign[sign]
        assert (row.colour, row.class_, row["class"], row.town, row.height) == ("red", 4, 4, lille, 7)
        assert "class_" in dir(row) and "class" not in dir(row)
    with library.in_memory() as db:
        assert db.tables == ["town", "road_sign"] and db.read().schema == library.SCHEMA


def test_an_underscore_stands_for_a_keyword_and_for_nothing_else():
    schema = "create_table t\nadd_field t class int64\nadd_field t n int64\n"
    with annals.in_memory(schema) as db:
        with db.write() as tx:
            tx.t.insert_all([{"class": 1, "n": 1}, {"class_": 2, "n": 2}])
            tx.t.upsert("id", id=1, class_=3, n=2)
            with pytest.raises(annals.errors.NotFound, match="has no field \"n_\""):
                tx.t.insert(class_=1, n_=1)
            with pytest.raises(annals.errors.Invalid, match="`class` is given twice"):
                tx.t.insert_row({"class": 1, "class_": 1, "n": 1})
        assert [row.class_ for row in db.t] == [1, 3]
        with pytest.raises(AttributeError):
            db.t[0].n_
    with annals.in_memory(schema + "add_field t class_ int64\n") as db:
        with db.write() as tx:
            tx.t.insert_row({"class": 1, "class_": 2, "n": 3})
        assert db.t[0].class_ == 2 and db.t[0]["class"] == 1


def test_the_guides_passage(tmp_path, monkeypatch):
    guide = (given("ANNALS_GUIDE") / "python.md").read_text()
    (schema,) = re.findall(r"```schema shop.schema\n(.*?)```", guide, re.DOTALL)
    (passage,) = re.findall(r"```python typed\n(.*?)```", guide, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    shop = compiled(tmp_path, "shop", schema)
    (tmp_path / "passage.py").write_text(passage)
    assert checked(tmp_path, "shop.py", "passage.py") == {}
    monkeypatch.setitem(sys.modules, "shop", shop)
    passage = loaded("passage", tmp_path / "passage.py")
    assert passage.add("Ada", "FR") == passage.add("Ada", "FR") and passage.add("Bea", "DE").country == "DE"
    with shop.open("shop.annals") as db:
        assert passage.names(db) == ["Ada", "Bea"]


def test_the_readmes_passage(tmp_path):
    readme = (given("ANNALS_ROOT") / "python" / "README.md").read_text()
    (schema,) = re.findall(r'SCHEMA = """\n(.*?)"""', readme, re.DOTALL)
    (passage,) = re.findall(r"```python\n(import cities\n.*?)```", readme, re.DOTALL)
    compiled(tmp_path, "cities", schema)
    (tmp_path / "passage.py").write_text(passage)
    found = checked(tmp_path, "passage.py")
    said = {number: line.split("  # mypy: ")[1] for number, line in enumerate(passage.splitlines(), 1) if "  # mypy: " in line}
    assert len(said) == len(found) == 2
    for number, message in said.items():
        assert message in found[f"passage.py:{number}"][0]


def test_names_that_mean_something_else(tmp_path):
    """Names of the package's own attributes are in brackets; keywords have an underscore."""
    golden = given("ANNALS_ROOT") / "crates" / "annals-codegen" / "tests" / "it" / "golden"
    assert checked(golden, f"--cache-dir={tmp_path}", "python.py") == {}
    module = loaded("hostile", golden / "python.py")
    with module.in_memory() as db, db.write() as tx:
        row = tx["class"].insert(class_="a", int=1, str="self", self=2, id=3, in_=4)
        assert tx["class"].class_get[3, 2, "self"].id == tx["class"].index("get")[3, 2, "self"].id == row and tx["class"][row]["id"] == 3


def own(kind):
    return sorted(name for name in dir(kind) if not name.startswith("__"))


def test_no_table_index_or_field_hides_an_attribute_of_the_package(tmp_path):
    of_database = sorted({*own(annals.Database), *own(annals.Snapshot), *own(annals.Transaction)})
    of_table = sorted({*own(annals.Table), *own(annals.WritableTable)} - {"_repr_html_"})
    tables = "".join(f"create_table {name}\n" for name in of_database)
    fields = "".join(f"add_field t {name} int64\n" for name in own(annals.Row))
    indexes = "".join(f"create_index t_{name} t id\n" for name in of_table)
    module = compiled(tmp_path, "names", f"{tables}create_table t\n{fields}{indexes}")
    assert checked(tmp_path, "names.py") == {}
    for kind, names in [(module._Tables, of_database), (module._TIndexes, set(of_table) - {"index"}), (module.T, own(annals.Row))]:
        assert not set(names) & set(vars(kind)), kind
