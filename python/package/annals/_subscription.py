"""Subscriptions."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from ._core import Feed
    from ._past import Changed


class Subscription:
    """The commits from one on, each once, in order; iterating waits for the next one.

    >>> import annals
    >>> with annals.in_memory("create_table city\\nadd_field city name string\\n") as db:
    ...     feed = db.subscribe()
    ...     with db.write(comment="new") as tx:
    ...         _ = tx.city.insert(name="Lille")
    ...     commit = next(feed)
    ...     commit.comment, commit.rows[0].new
    ('new', {'name': 'Lille'})
    """

    def __init__(self, feed: Feed) -> None:
        """Wrap a feed; programs call ``Database.subscribe``."""
        self._feed = feed
        # What a thread took for a task that was cancelled meanwhile: the next one gets it.
        self._taken: deque[Changed] = deque()
        self._taking = Lock()

    def next(self, timeout: float | None = None) -> Changed | None:
        """Return the next commit; None after ``timeout`` seconds, or at the end."""
        if self._taken or self._taking.locked():
            with self._taking:
                if self._taken:
                    return self._taken.popleft()
        return self._feed.next(timeout)

    def _take(self) -> None:
        with self._taking:
            if not self._taken:
                commit = self._feed.next(0.2)
                if commit is not None:
                    self._taken.append(commit)

    def close(self) -> None:
        """End it."""
        self._feed.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> Changed:
        commit = self.next()
        if commit is None:
            raise StopIteration
        return commit

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Changed:
        import asyncio

        # A thread waits for a moment at a time, so that a task that is cancelled leaves none waiting.
        while True:
            if self._taken:
                return self._taken.popleft()
            await asyncio.to_thread(self._take)
            if self._taken:
                continue
            if self._feed.is_over:
                raise StopAsyncIteration
