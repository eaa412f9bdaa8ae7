"""The store of every answer ever received: one SQLite file for all runs, keyed by the content of the request."""

from helpers.answers.store import (
    Answer,
    Reply,
    Request,
    Store,
    StoreError,
    keys,
)

__all__ = [
    "Answer",
    "Reply",
    "Request",
    "Store",
    "StoreError",
    "keys",
]
