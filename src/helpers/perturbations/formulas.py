"""Element substitution: a formula, its name and every mention of the compound, swapped within the group."""

from __future__ import annotations

from helpers.perturbations.composition import Composition, find, parse, symbols, unread

__all__ = ["Composition", "elements", "parse", "spans", "unread"]


def spans(text: str) -> list[tuple[int, int]]:
    """Return where the formulas of a text stand."""
    return [(token.start, token.end) for token in find(text)]


def elements(text: str) -> frozenset[str]:
    """Return the elements of all formulas in a text, variables allowed."""
    return frozenset().union(*(symbols(token.text) for token in find(text)))
