"""Annals: an embedded relational database that never forgets.

>>> import annals
>>> with annals.in_memory("create_table city\\nadd_field city name string\\n") as db:
...     with db.write(comment="the first city") as tx:
...         lille = tx.city.insert(name="Lile")
...     with db.write() as tx:
...         tx.city.update(lille, name="Lille")
...     db.read().city[lille].name
...     [(version.kind, version.new["name"]) for version in db.history("city", lille)]
'Lille'
[('insert', 'Lile'), ('update', 'Lille')]
"""

from collections.abc import Sequence as _Sequence

from ._core import (
    Answer,
    Changeset,
    Database,
    Feed,
    Index,
    Row,
    RowIterator,
    Rows,
    Savepoint,
    Snapshot,
    Table,
    Transaction,
    WritableTable,
    __version__,
    check,
    in_memory,
    open,
)
from ._past import Blame, Change, Changed, Version
from ._subscription import Subscription
from . import errors
from .errors import Error

# pandas names the columns of rows that are sequences with `_fields`, as named tuples are.
_Sequence.register(Row)

__all__ = [
    "Answer",
    "Blame",
    "Change",
    "Changed",
    "Changeset",
    "Database",
    "Error",
    "Feed",
    "Index",
    "Row",
    "RowIterator",
    "Rows",
    "Savepoint",
    "Snapshot",
    "Subscription",
    "Table",
    "Transaction",
    "Version",
    "WritableTable",
    "__version__",
    "check",
    "errors",
    "in_memory",
    "open",
]
