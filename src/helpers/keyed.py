"""Randomness that depends on (seed, id, slot) and on nothing else.

Every draw of the suite takes its bits from SHA-256 of its own key, so that order, batch, process and machine
do not matter and adding an item leaves every other draw alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["blocks", "unit", "word"]


def _prefix(seed: int, label: str) -> bytes:
    return f"{seed}\x1f{label}\x1f".encode()


def word(seed: int, *key: str | int) -> int:
    """Return the 64-bit word that belongs to this key.

    >>> word(42, "recipe-7", "element_substitution", 0) == word(42, "recipe-7", "element_substitution", 0)
    True
    >>> word(42, "recipe-7") == word(43, "recipe-7")
    False
    """
    text = _prefix(seed, "\x1f".join(map(str, key)))
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def unit(seed: int, *key: str | int) -> float:
    """Return the number in [0, 1) that belongs to this key, with 53 random bits.

    >>> 0.0 <= unit(0, "a") < 1.0
    True
    """
    return (word(seed, *key) >> 11) / 2**53


def blocks(seed: int, label: str, ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return four 64-bit words for each id, shape (n, 4), from one SHA-256 an id.

    >>> blocks(42, "principle", ["a", "b"]).shape
    (2, 4)
    """
    start = hashlib.sha256(_prefix(seed, label))
    digests = []
    for name in ids:
        state = start.copy()
        state.update(name.encode())
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 4)
