"""Look at what a run made: recipes with their edits marked, pairs side by side, judgements by status."""

from helpers.explore.pages import (
    Html,
    edits_html,
    judgement_browser,
    judgement_html,
    pair_browser,
    pair_html,
    show_judgements,
    show_pairs,
)

__all__ = [
    "Html",
    "edits_html",
    "judgement_browser",
    "judgement_html",
    "pair_browser",
    "pair_html",
    "show_judgements",
    "show_pairs",
]
