"""A judge that writes its verdict twice: where its reply may end without losing anything."""

from __future__ import annotations

import re

from helpers.verdicts.parsing import parse
from helpers.verdicts.replies import read

__all__ = ["without_repeats"]

_OPENING = re.compile(r"```[ \t]*+json\b", re.IGNORECASE)
_ENDS_WITH_OPENING = re.compile(r"```[ \t]*+(?:json)?\s*+\Z", re.IGNORECASE)
_FENCE = re.compile(r"`{3,}+")


def without_repeats(text: str) -> str:
    """Return a reply up to the end of its first fenced verdict, where what follows changes nothing.

    It is cut when a fenced json block comes later and the reply reads as the same overall_score without it. Any other
    reply is returned as it is; two different verdicts are no repetition.

    >>> verdict = '```json\\n{"overall_score": 3.5}\\n```'
    >>> without_repeats(f"Sound.\\n{verdict}\\nTo sum up:\\n{verdict}") == f"Sound.\\n{verdict}"
    True
    >>> twice = f"{verdict} On second thought: {verdict.replace('3', '4')}"
    >>> without_repeats(twice) == twice
    True
    """
    if text.count("```") < 3:
        return text
    end = _first_verdict(text)
    later = _OPENING.search(text, end) if end else None
    if not later:
        return text
    closing = _FENCE.search(text, end, later.start())
    cut = text[: closing.end()] if closing else text[: later.start()].rstrip()
    score = parse(cut).overall_score
    return cut if score is not None and score == parse(text).overall_score else text


def _first_verdict(text: str) -> int:
    """Return where the object of the first fenced verdict outside the reasoning ends, 0 without one."""
    for found in read(text).objects:
        start, end = found.span
        fenced = _ENDS_WITH_OPENING.search(text, max(0, start - 40), start)
        if fenced and parse(text[start:end]).overall_score is not None:
            return end
    return 0
