"""The surface reader: it looks at a recipe as a hurried reader does, and understands no chemistry.

Sections, length, numbers and familiar words please it; long names and rare words put it off. It is here because
such judges exist: biased by wording and blind to errors.
"""

from __future__ import annotations

import re
from functools import lru_cache

from helpers.judges.rules_text import Fault, Opinion, recipe, steps

__all__ = ["judge"]

_WORD = re.compile(r"\S+")
_STRANGE = re.compile(
    r"[A-Za-z]{14,}|[\w,'()-]*\d[,'\d]*-[a-z]{3}[\w,'()-]*|[a-z]+(?:-\d+-|\(\d[+-]\))\S*|\w+\([IV]+\)|[\w-]*[a-z]-[a-z]+-[a-z][\w-]*"
)
_NUMBER = re.compile(r"\d")
_LEVELS = (1.6, 2.4, 3.2, 4.0)  # strange words in a hundred, each worth half a point


@lru_cache(maxsize=1 << 15)
def _counts(line: str) -> tuple[int, int, int]:
    """Return the words of a line, the strange ones and those with a digit."""
    words = _WORD.findall(line)
    strange = sum(len(word) > 60 or _STRANGE.fullmatch(word.strip(".,;:")) is not None for word in words)
    return len(words), strange, sum(_NUMBER.search(word) is not None for word in words)


def judge(request: str, text: str) -> Opinion:
    """Judge a recipe by how complete and how familiar it looks."""
    read = recipe(text)
    sections = sum(map(bool, (read.materials, read.equipment, read.procedure, read.characterization)))
    words, strange, numbers = map(sum, zip(*map(_counts, text.splitlines() or [""]), strict=True))
    share = 100 * strange / max(words, 1)
    vague = sum(not steps(line) for line in read.procedure)
    faults = tuple(_faults(sections if read.headed else 1, words, share, numbers, vague))
    price = sum(fault.price for fault in faults)
    looks = 4.5 - price
    points = {
        "materials_appropriateness": looks, "equipment_appropriateness": looks, "procedure_completeness": looks,
        "procedure_feasibility": looks, "characterization_appropriateness": 4.0 if read.characterization else 2.5,
        "overall": looks,
    }  # fmt: skip
    remarks = (
        f"The recipe has {words} words and {numbers} numbers in {sections} sections.",
        "It reads well." if share < _LEVELS[0] else f"{strange} of its words are unfamiliar to me.",
        "I did not check the chemistry.",
    )
    return Opinion(points, faults, remarks)


def _faults(sections: int, words: int, share: float, numbers: int, vague: int) -> list[Fault]:
    level = sum(share >= limit for limit in _LEVELS)
    found = [
        Fault(0.5 * (4 - sections), "Sections that I expect are missing."),
        Fault(0.5 * (words < 120) + 0.5 * (words < 50), "It is short."),
        Fault(0.5 * (numbers < 12) + 0.5 * (numbers < 5), "It gives few numbers."),
        Fault(0.5 * level, "Long and unusual names make it hard to follow."),
        Fault(0.5 * (vague > 2), "Some steps use words that I do not know from the laboratory."),
    ]
    return [fault for fault in found if fault.price]
