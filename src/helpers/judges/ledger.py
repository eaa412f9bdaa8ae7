"""Replies on their way to the store: committed together, and counted by nobody before they are on the disk."""

from __future__ import annotations

import asyncio

from helpers.answers import Reply, Store

__all__ = ["Ledger"]


class Ledger:
    """Commit the replies that arrive in one turn of the event loop together; each sender waits for its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.broken: Exception | None = None
        self._arrived: list[Reply] = []
        self._committed: asyncio.Event | None = None

    async def put(self, *replies: Reply) -> bool:
        """Return whether the replies are on the disk."""
        self._arrived += replies
        if self._committed is None:
            self._committed = asyncio.Event()
            asyncio.get_running_loop().call_soon(self.flush)
        await self._committed.wait()
        return self.broken is None

    def flush(self) -> None:
        """Commit what has arrived; what cannot be written is kept for another try."""
        committed, self._committed = self._committed, None
        try:
            if self._arrived:
                self.store.put(self._arrived)
                self._arrived = []
        except Exception as error:  # for `ask` to raise, once the replies in flight have come in
            self.broken = error
        if committed is not None:
            committed.set()
