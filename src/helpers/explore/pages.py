"""Look at what a run made: recipes with their edits marked, pairs side by side, judgements by status.

Pure functions make HTML from tags and inline styles that JupyterLab's sanitiser keeps, and every word of a text is
escaped: what a model wrote is shown and never run. The widgets need a kernel; `show_pairs` and `show_judgements` are
their twins for an executed notebook.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from helpers import keyed
from helpers.explore.browser import Browser

if TYPE_CHECKING:
    from helpers.runs import Run

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

Where: TypeAlias = Sequence[tuple[str, str, Any]] | None

MOST_WORDS = 1_500
LEAST_ALIKE = 0.5
WORDS = re.compile(r"\s+|\d+(?:\.\d+)?|[^\W\d]+|[^\w\s]|\w")
HALF_STEPS = [step / 2 for step in range(2, 11)]
BOX = "white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid rgba(128,128,128,.5);padding:.2em .8em"
GONE = "background-color:rgba(228,37,54,.18);text-decoration:line-through"
CAME = "background-color:rgba(60,160,90,.25);text-decoration:underline"
OURS = "background-color:rgba(248,156,32,.3);border-bottom:2px solid rgba(248,156,32,.9);color:inherit"
CELL = "border:1px solid rgba(128,128,128,.4);padding:.1em .6em;text-align:center"


class Html(str):
    """HTML that this module made, shown as such at the end of a cell; as plain text where HTML is not.

    Dollar signs stay dollar signs: JupyterLab would set the text between two of them as a formula.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text without its tags."""
        return html.unescape(re.sub(r"<[^>]*>", " ", self.replace("</div>", "\n"))).strip()

    def _repr_html_(self) -> str:
        return f'<div class="mathjax_ignore">{self}</div>'


def edits_html(text: str, changes: Iterable[Mapping[str, Any]]) -> Html:
    """Return a text with each edit's old words struck out, the new ones underlined, and a list of the reasons.

    >>> edit = {"start": 0, "end": 4, "old": "Heat", "new": "Cool", "kind": "action_antonym", "why": "<opposite>"}
    >>> "Cool</ins> it" in edits_html("Heat it", [edit]), "&lt;opposite&gt;" in edits_html("Heat it", [edit])
    (True, True)
    """
    made, place, reasons = [], 0, []
    for change in sorted(changes, key=lambda change: int(change["start"])):
        old, new, why = (_escape(change[name]) for name in ("old", "new", "why"))
        made += [
            _escape(text[place : change["start"]]),
            f'<del style="{GONE}">{old}</del><ins style="{CAME}" title="{why}">{new}</ins>',
        ]
        reasons.append(f"<li>{old} → {new}: {why or _escape(change['kind'])}</li>")
        place = change["end"]
    count = "1 edit" if len(reasons) == 1 else f"{len(reasons)} edits"
    listed = f"<details><summary>{count}</summary><ol>{''.join(reasons)}</ol></details>" if reasons else ""
    return Html(f'<div style="{BOX}">{"".join(made)}{_escape(text[place:])}</div>{listed}')


def pair_html(pair: Mapping[str, Any]) -> Html:
    """Return a pair as HTML: its facts, the scores on one scale, both sides with their differences, what was judged.

    `pair` is a row of the table of pairs; `original` and `changes` (the recipe and its edits) are shown where given.

    >>> "<script" in pair_html({"prompt": "p", "chosen": "<script>", "rejected": "r", "score_chosen": 4.0})
    False
    """
    names = ("sample_id", "dataset_name", "perturbation_category", "perturbation_rate", "score_delta", "anchor_score")
    chosen, rejected = _marked(str(pair["chosen"]), str(pair["rejected"]))
    sides = [
        f"<div><b>{side}</b>: {_escape(pair.get(f'{side}_model'))}, score {_escape(pair.get(f'score_{side}'))}"
        f'<div style="{BOX}">{text}</div></div>'
        for side, text in (("chosen", chosen), ("rejected", rejected))
    ]
    grid = f'<div style="display:grid;grid-template-columns:1fr 1fr;gap:1em">{"".join(sides)}</div>'
    recipe = ""
    if isinstance(pair.get("original"), str):
        edited = edits_html(pair["original"], pair["changes"])
        recipe = f"<details open><summary>the recipe and its edits</summary>{edited}</details>"
    return Html(f"{_facts(pair, names)}{_scale(pair)}{grid}{recipe}{_folded('what was judged', pair['prompt'])}")


def judgement_html(row: Mapping[str, Any]) -> Html:
    """Return a judgement as HTML: its facts and status, every score, the judge's words, and what was judged.

    >>> "&lt;b&gt;" in judgement_html({"judge": "a", "text": "<b>", "overall_score": None, "status": "unparsable"})
    True
    """
    names = ("sample_id", "dataset_name", "judge", "status", "reason", "finish_reason", "served_model")
    scores = [name for name in row if name.endswith("_score") and _known(row[name])]
    rows = "".join(f"<tr><td>{_escape(name)}</td><td>{_escape(row[name])}</td></tr>" for name in scores)
    words = f'<div style="{BOX}">{_escape(row.get("text") or "no text")}</div>'
    judged = "".join(_folded(name, row[name]) for name in ("prompt", "response", "reasoning") if _known(row.get(name)))
    return Html(f"{_facts(row, names)}<table>{rows}</table>{words}{judged}")


def show_pairs(run: Run, n: int = 3, *, seed: int) -> Html:
    """Show n pairs of a run, drawn by the seed, one below the other: complete without a kernel."""
    keys = run.read("pairs", ["pair_key"])
    drawn = _drawn(keys, ["pair_key"], n, seed)["pair_key"].tolist()
    pairs, render = _pairs(run, [("pair_key", "in", drawn)])
    return _stack(_drawn(pairs, ["pair_key"], n, seed), render, f"{len(keys):,} pairs")


def show_judgements(run: Run, n: int = 3, *, seed: int, status: str = "") -> Html:
    """Show n judgements of a run, drawn by the seed, with one status or any: complete without a kernel."""
    key = ["item_id", "judge", "repeat"]
    rows = run.read("judgements", [*key, "status"])
    rows = rows[rows["status"] == status] if status else rows
    drawn = _drawn(rows, key, n, seed)[key]
    shown = _judgements(run, [("item_id", "in", drawn["item_id"].tolist())]).merge(drawn, on=key)
    return _stack(_drawn(shown, key, n, seed), judgement_html, f"{len(rows):,} {status} judgements")


def pair_browser(run: Run) -> Browser:
    """Page through a run's pairs: filters, keys, marks.

    The arrow keys left and right turn the pages once the slider's handle has the focus (a click on it, or Tab).
    """
    pairs, render = _pairs(run)
    filters = {"track": "track", "dataset_name": "condition", "perturbation_category": "category"}
    filters |= {"chosen_model": "chosen", "rejected_model": "rejected"}
    return Browser(pairs, filters, "score_delta", render, run.path / "marked_pairs.csv")


def judgement_browser(run: Run) -> Browser:
    """Page through a run's judgements by status, judge and condition; those without a score come first."""
    rows = _judgements(run).sort_values("overall_score", na_position="first", kind="stable").reset_index(drop=True)
    filters = {"track": "track", "status": "status", "judge": "judge", "dataset_name": "condition"}
    return Browser(rows, filters, "overall_score", judgement_html, run.path / "marked_judgements.csv")


def _escape(value: object) -> str:
    return html.escape(str(value)) if _known(value) else "–"


def _known(value: object) -> bool:
    return value is not None and value == value


def _facts(row: Mapping[str, Any], names: Sequence[str]) -> str:
    facts = [f"{name.replace('_', ' ')} <b>{_escape(row[name])}</b>" for name in names if _known(row.get(name))]
    return f"<div>{' · '.join(facts)}</div>"


def _scale(pair: Mapping[str, Any]) -> str:
    """Return the scale in half steps with C, R and A where the chosen score, the rejected one and the anchor lie."""
    places = {"C": pair.get("score_chosen"), "R": pair.get("score_rejected"), "A": pair.get("anchor_score")}
    nearest = {sign: round(float(str(score)) * 2) / 2 for sign, score in places.items() if _known(score)}
    marks = [" ".join(sign for sign, place in nearest.items() if place == step) for step in HALF_STEPS]
    signs = "".join(f'<td style="{CELL}"><b>{mark}</b></td>' for mark in marks)
    steps = "".join(f'<th scope="col" style="{CELL}">{step:g}</th>' for step in HALF_STEPS)
    table = f'<table style="border-collapse:collapse;margin:.4em 0"><tr>{steps}</tr><tr>{signs}</tr></table>'
    names = {"C": "chosen", "R": "rejected", "A": "anchor"}
    told = ", ".join(f"{sign} {names[sign]} {_escape(places[sign])}" for sign in nearest)
    return f"{table}<small>{told}; the boxes are the nearest half steps</small>"


def _marked(first: str, second: str) -> tuple[str, str]:
    """Return two texts, escaped, the words that only one of them has marked, if they are alike and not very long."""
    one, two = (WORDS.findall(text) for text in (first, second))
    if max(len(one), len(two)) > MOST_WORDS:
        return _escape(first), _escape(second)
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return _escape(first), _escape(second)
    codes = matcher.get_opcodes()
    return (
        "".join(_mark("".join(one[a:b]), tag == "equal") for tag, a, b, _, _ in codes),
        "".join(_mark("".join(two[c:d]), tag == "equal") for tag, _, _, c, d in codes),
    )


def _mark(text: str, same: bool) -> str:
    return _escape(text) if same or not text.strip() else f'<mark style="{OURS}">{_escape(text)}</mark>'


def _folded(title: str, text: object) -> str:
    return f'<details><summary>{_escape(title)}</summary><div style="{BOX}">{_escape(text)}</div></details>'


def _stack(rows: pd.DataFrame, render: Callable[[dict[str, Any]], str], of: str) -> Html:
    names = [str(name) for name in rows.columns]
    parts = [render(dict(zip(names, row, strict=True))) for row in rows.itertuples(index=False, name=None)]
    rule = '<hr style="border:0;border-top:1px solid rgba(128,128,128,.5);margin:1em 0">'
    return Html(rule.join([f"<div>{len(parts)} of {of}</div>", *parts]))


def _drawn(rows: pd.DataFrame, key: list[str], n: int, seed: int) -> pd.DataFrame:
    """Return n rows in an order that depends on the seed and their keys alone."""
    ids = rows[key[0]].str.cat(rows[key[1:]].astype("str"), sep="/")
    words = keyed.blocks(seed, "shown", ids)[:, 0]
    return rows.iloc[np.argsort(words, kind="stable")[:n]]


def _judgements(run: Run, where: Where = None) -> pd.DataFrame:
    items = run.read("items", ["item_id", "track", "sample_id", "dataset_name", "prompt", "response"], where=where)
    written = run.read("completions", ["item_id", "response"], where=where).set_index("item_id")["response"]
    items["response"] = items["response"].fillna(items["item_id"].map(written))
    return run.read("judgements", where=where).merge(items, on="item_id", how="left", validate="m:1")


def _pairs(run: Run, where: Where = None) -> tuple[pd.DataFrame, Callable[[dict[str, Any]], Html]]:
    """Return a run's pairs, and a function that renders one with its recipe and the edits made to it."""
    pairs = run.read("pairs", where=where)
    about = ["sample_id", "dataset_name", "response", "changes"]
    samples = [("track", "==", "recipe"), ("sample_id", "in", pairs["sample_id"].unique().tolist())]
    recipes = run.read("items", about, where=samples).set_index(["sample_id", "dataset_name"])
    texts, changes = recipes["response"].to_dict(), recipes["changes"].to_dict()

    def render(pair: dict[str, Any]) -> Html:
        key = (pair["sample_id"], pair["dataset_name"])
        known = changes.get(key) is not None and (key[0], "original") in texts
        return pair_html(pair | ({"original": texts[key[0], "original"], "changes": changes[key]} if known else {}))

    return pairs, render
