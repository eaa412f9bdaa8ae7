"""The record of a change to a recipe's text, and how a set of them is applied and undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Edit", "Perturbation", "apply", "cuts", "revert"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """One span of the original text and what replaces it.

    `start` and `end` are character offsets in the original text, `old` is `text[start:end]`. `entity` ties
    the mentions of one compound together: edits that share it are made together or not at all. `why` says in
    a judge's words what is wrong (error) or that nothing is (represent).
    """

    start: int
    end: int
    old: str
    new: str
    kind: str
    entity: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A recipe after its edits. `rate_actual` is the share of distinct word tokens that disappeared."""

    text: str
    changes: tuple[Edit, ...]
    rate_requested: float
    rate_actual: float
    budget: int
    applicable: bool


def _start(edit: Edit) -> int:
    return edit.start


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Apply non-overlapping edits in one pass.

    >>> apply("heat at 500 °C", [Edit(8, 14, "500 °C", "1000 °C", "numerical_perturbation")])
    'heat at 1000 °C'
    """
    pieces, position = [], 0
    for edit in sorted(edits, key=_start):
        if edit.start < position or text[edit.start : edit.end] != edit.old:
            raise ValueError(f"edit {edit} overlaps another or does not fit the text")
        pieces += [text[position : edit.start], edit.new]
        position = edit.end
    return "".join([*pieces, text[position:]])


def revert(text: str, changes: Iterable[Edit]) -> str:
    """Undo the edits that made `text`, exactly.

    >>> revert("heat at 1000 °C", [Edit(8, 14, "500 °C", "1000 °C", "numerical_perturbation")])
    'heat at 500 °C'
    """
    shift, undone = 0, []
    for edit in sorted(changes, key=_start):
        start = edit.start + shift
        undone.append(Edit(start, start + len(edit.new), edit.new, edit.old, edit.kind))
        shift += len(edit.new) - len(edit.old)
    return apply(text, undone)


def cuts(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Tell whether `start:end` overlaps one of the spans without holding it whole.

    >>> cuts([(4, 8)], 0, 5), cuts([(4, 8)], 3, 9), cuts([(4, 8)], 8, 9)
    (True, False, False)
    """
    return any(low < end and start < high and not (start <= low and high <= end) for low, high in spans)
