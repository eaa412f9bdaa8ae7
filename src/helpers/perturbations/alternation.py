"""One regular expression for a closed list of words, fast enough to try at every word of a text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

__all__ = ["either"]


def either(words: Iterable[str]) -> str:
    """Return a pattern that matches the longest of the words that fits, grouped by first letter for speed.

    >>> re.match(either(["oven", "oil bath", "oil"]), "oil bath").group()
    'oil bath'
    """
    ordered = sorted(set(words), key=lambda word: (word[0], -len(word), word))
    groups = itertools.groupby(ordered, key=lambda word: word[0])
    return "(?:" + "|".join(f"{re.escape(first)}(?:{_rest(group)})" for first, group in groups) + ")"


def _rest(group: Iterable[str]) -> str:
    return "|".join(re.escape(word[1:]) for word in group)
