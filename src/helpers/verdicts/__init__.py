"""From a judge's reply to a typed verdict: one parser, one written policy, no guessing."""

from helpers.verdicts.parsing import (
    HIGHEST,
    LOWEST,
    STATUSES,
    Status,
    Verdict,
    parse,
)

__all__ = [
    "HIGHEST",
    "LOWEST",
    "STATUSES",
    "Status",
    "Verdict",
    "parse",
]
