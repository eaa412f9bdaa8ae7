"""The word tokens of a text, and how many of them are gone after each of a series of edits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from .edits import Edit, apply

__all__ = ["tokens", "vanished"]

_WORD = re.compile(r"\w+")


def tokens(text: str) -> frozenset[str]:
    """Return the distinct word tokens of a text, case-folded.

    >>> sorted(tokens("Stir, then stir at 2 °C"))
    ['2', 'at', 'c', 'stir', 'then']
    """
    return frozenset().union(*map(_line_tokens, text.split("\n")))


@lru_cache(maxsize=1024)
def _line_tokens(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(line.casefold()))


def vanished(text: str, steps: Iterable[Sequence[Edit]]) -> Iterator[int]:
    """Yield how many of the distinct tokens of a text are gone after each step; steps add up, edits never overlap.

    Only the words that an edit touches are read again, so that the work grows with the edits and not with their
    square.

    >>> stir, again = (Edit(a, b, "Stir"[a > 0 :], "Mix", "x") for a, b in ((0, 4), (10, 13)))
    >>> list(vanished("Stir then tir", [[stir], [again]]))
    [1, 2]
    """
    steps = [tuple(step) for step in steps]
    places = _places(text, [edit for step in steps for edit in step])
    left = Counter(_WORD.findall(text.casefold()))
    made: dict[tuple[int, int], list[Edit]] = {}
    gone = 0
    for step in steps:
        for edit in step:
            place = places[edit.start]
            before = _words(text, place, made.get(place, []))
            after = _words(text, place, [*made.setdefault(place, []), edit])
            made[place].append(edit)
            gone += _lost(left, before, after)
        yield gone


def _lost(left: Counter[str], before: Counter[str], after: Counter[str]) -> int:
    """Move the counts of one place to those after an edit; return by how many more tokens are gone."""
    lost = 0
    for word in before.keys() | after.keys():
        if word in left:
            was = left[word]
            left[word] = was - before[word] + after[word]
            lost += (left[word] == 0) - (was == 0)
    return lost


def _words(text: str, place: tuple[int, int], made: list[Edit]) -> Counter[str]:
    start, end = place
    shifted = [Edit(e.start - start, e.end - start, e.old, e.new, e.kind) for e in made]
    return Counter(_WORD.findall(apply(text[start:end], shifted).casefold()))


def _places(text: str, edits: Iterable[Edit]) -> dict[int, tuple[int, int]]:
    """Return, by an edit's start, the stretch of whole words that it touches; edits in one word share theirs."""
    places: dict[int, tuple[int, int]] = {}
    group: list[int] = []
    low = high = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        start, end = _whole_words(text, edit.start, edit.end)
        if group and start > high:
            places |= dict.fromkeys(group, (low, high))
            group = []
        low, high = (min(low, start), max(high, end)) if group else (start, end)
        group.append(edit.start)
    return places | dict.fromkeys(group, (low, high))


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _WORD.match(text[start - 1]):
        start -= 1
    tail = _WORD.match(text, end)
    return start, tail.end() if tail else end
