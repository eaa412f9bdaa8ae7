"""From a judge's reply to a typed verdict: one parser, one written policy, no guessing."""

from helpers.verdicts.parsing import (
    HIGHEST,
    LOWEST,
    STATUSES,
    Status,
    Verdict,
    parse,
)
from helpers.verdicts.repeats import without_repeats

__all__ = [
    "HIGHEST",
    "LOWEST",
    "STATUSES",
    "Status",
    "Verdict",
    "parse",
    "without_repeats",
]
