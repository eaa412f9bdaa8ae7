"""The article before a replaced word: "an SnO2 film" may become neither "an tin dioxide film" nor "an GeO2 film"."""

from __future__ import annotations

import re

from .composition import ELEMENTS

__all__ = ["fits"]

_ARTICLE = re.compile(r"(?<![\w-])(an?)\s$", re.IGNORECASE)
_SPOKEN = re.compile(
    r"[(\[]*(?:(?P<number>\d[\d, ]*)|(?P<symbol>[A-Z][a-z]?)(?![a-z])|(?P<letter>[a-z])(?=-)|(?P<word>\w+))"
)
_EIGHT = re.compile(r"8|1[18](?:[, ]?\d{3})*[, ]*$")
_LETTERS = frozenset("aefhilmnorsx")  # el, em, en, ...
_YOU = re.compile(r"eu|u[^aeiou][aeiou]|one")  # europium, urea, one-necked


def fits(text: str, start: int, new: str) -> bool:
    """Say whether `new` can stand at `start` after the article that is there; a formula has two readings.

    >>> fits("an SnO2 film", 3, "tin dioxide"), fits("an SnO2 film", 3, "MgO"), fits("in a urea melt", 5, "Urea")
    (False, True, True)
    >>> fits("for an 8 h soak", 7, "40 h"), fits("for an 8 h soak", 7, "80 h"), fits("the SnO2", 4, "tin dioxide")
    (False, True, True)
    """
    article = _ARTICLE.search(text, max(0, start - 4), start)
    spoken = _SPOKEN.match(new) if article else None
    if article is None or spoken is None:
        return True
    return (article[1].lower() == "an") in _vowels(spoken)


def _vowels(spoken: re.Match[str]) -> set[bool]:
    """Return whether a word starts with a vowel's sound, for each way to read it."""
    if spoken["number"]:
        return {_EIGHT.match(spoken["number"]) is not None}
    if spoken["letter"]:
        return {spoken["letter"] in _LETTERS}
    if spoken["symbol"]:
        element = ELEMENTS.get(spoken["symbol"]) or ELEMENTS.get(spoken["symbol"][0])
        return {spoken["symbol"][0].lower() in _LETTERS} | ({_vowel(element["name"])} if element else set())
    return {_vowel(spoken["word"].lower())}


def _vowel(word: str) -> bool:
    return word[0] in "aeiou" and not _YOU.match(word)
