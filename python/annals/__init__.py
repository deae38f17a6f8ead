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

from ._core import (
    Answer,
    Blame,
    Change,
    Changed,
    Changeset,
    Database,
    Index,
    Row,
    RowIterator,
    Rows,
    Savepoint,
    Snapshot,
    Table,
    Transaction,
    WritableTable,
    in_memory,
    open,
)
from ._subscription import Subscription
from . import errors
from .errors import Error

__all__ = [
    "Answer",
    "Blame",
    "Change",
    "Changed",
    "Changeset",
    "Database",
    "Error",
    "Index",
    "Row",
    "RowIterator",
    "Rows",
    "Savepoint",
    "Snapshot",
    "Subscription",
    "Table",
    "Transaction",
    "WritableTable",
    "errors",
    "in_memory",
    "open",
]
