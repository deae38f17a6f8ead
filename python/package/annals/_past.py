"""What history is told in: named tuples, which can be compared, pickled and taken apart."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

_Kind = Literal["insert", "update", "delete", "state"]


class Version(NamedTuple):
    """One version of a row: what a transaction did to it."""

    txid: int
    time: datetime
    comment: str | None
    kind: _Kind
    old: dict[str, Any] | None
    new: dict[str, Any] | None


class Blame(NamedTuple):
    """Since when a field has its value."""

    field: str
    value: Any
    txid: int
    time: datetime
    comment: str | None
    kind: _Kind


class Change(NamedTuple):
    """A row that differs, with its values before and after; None where there was no row."""

    table: str
    id: int
    old: dict[str, Any] | None
    new: dict[str, Any] | None


class Changed(NamedTuple):
    """The changes of one transaction."""

    txid: int
    time: datetime
    comment: str | None
    rows: list[Change]
