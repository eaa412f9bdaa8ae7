from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import explore
from helpers.explore import pages
from helpers.explore.browser import Browser
from helpers.params import Params
from helpers.perturbations.edits import Edit, apply
from helpers.runs import Run

PAYLOAD = (
    '<script>document.title="x"</script><img src=x onerror="alert(1)"> ![i](http://example.org/i.png) $x^2$ </div>'
)
KEPT = {"b", "div", "small", "table", "tr", "td", "th", "details", "summary", "ol", "li", "hr", "ins", "del", "mark"}
EDIT = {"start": 8, "end": 14, "old": "500 °C", "new": "1000 °C", "kind": "numerical_perturbation", "why": "too hot"}


class Reader(HTMLParser):
    """Collect the tags, attributes and text that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def pair(**change: Any) -> dict[str, Any]:
    row = {
        "pair_key": "k1",
        "track": "recipe",
        "sample_id": "s1",
        "dataset_name": "numerical_perturbation_100pct",
        "perturbation_category": "error",
        "perturbation_rate": 1.0,
        "prompt": "Judge it.",
        "chosen": "The heat is too high. Score 2",
        "rejected": "The heat is fine. Score 4",
        "chosen_model": "keen",
        "rejected_model": "blind",
        "score_chosen": 2.0,
        "score_rejected": 4.0,
        "score_delta": 2.0,
        "anchor_score": 3.75,
    }
    return row | change


def judgement(**change: Any) -> dict[str, Any]:
    row = {
        "item_id": "s1/original",
        "judge": "keen",
        "repeat": 0,
        "overall_score": 3.5,
        "status": "ok",
        "text": "Good.",
    }
    return row | change


def run(tmp_path: Path, pairs: list[dict[str, Any]] | None = None) -> Any:
    items = [
        {"item_id": "s1/original", "dataset_name": "original", "response": "heat at 500 °C", "changes": None},
        {"item_id": "i1/0", "dataset_name": "flan", "response": None, "changes": None},
        {"item_id": "s1/numeric", "dataset_name": "numerical_perturbation_100pct", "response": "x", "changes": [EDIT]},
    ]
    rows = [judgement(), judgement(judge="blind", overall_score=None, status="refused", text=PAYLOAD)]
    tables = {
        "pairs": pd.DataFrame(
            pairs or [pair(), pair(pair_key="k2", track="instruction", score_delta=0.5, sample_id="s2")]
        ),
        "items": pd.DataFrame(items).assign(track="recipe", sample_id="s1", prompt="Make it."),
        "judgements": pd.DataFrame(rows),
        "completions": pd.DataFrame({"item_id": ["i1/0"], "response": ["Paris."]}),
    }
    for name, table in tables.items():
        (tmp_path / "data").mkdir(exist_ok=True)
        table.to_parquet(tmp_path / "data" / f"{name}.parquet", index=False)
    return Run(tmp_path, "05_analysis", Params())


def test_a_reply_is_shown_as_text_wherever_it_may_stand() -> None:
    hostile = dict.fromkeys(pair(), PAYLOAD) | {"score_chosen": 2.0, "score_rejected": 4.0, "anchor_score": None}
    edit = EDIT | {"old": PAYLOAD, "new": PAYLOAD, "why": PAYLOAD, "start": 0, "end": 3}
    for made in (
        explore.pair_html(hostile | {"original": PAYLOAD, "changes": [edit]}),
        explore.judgement_html(judgement(**dict.fromkeys(["judge", "text", "reason", "prompt", "response"], PAYLOAD))),
        explore.edits_html(PAYLOAD, [edit]),
    ):
        seen = Reader(made)
        assert seen.tags <= KEPT
        assert seen.names <= {"style", "title", "scope", "open"}
        assert "document.title" in seen.text


@given(st.text(max_size=200), st.text(max_size=200))
@settings(deadline=None)
def test_marking_words_loses_no_letter(chosen: str, rejected: str) -> None:
    seen = Reader(explore.pair_html(pair(chosen=f"<a>{chosen}", rejected=rejected)))
    assert seen.tags <= KEPT
    assert [Reader(side).text for side in pages._marked(chosen, rejected)] == [chosen, rejected]


def test_only_the_words_that_differ_are_marked() -> None:
    chosen, rejected = pages._marked("heat at 500", "heat at 900 slowly")
    assert Reader(chosen).text == "heat at 500"
    assert chosen.count("<mark") == 1
    assert rejected.split("<mark")[0] == "heat at "


def test_texts_that_have_little_in_common_are_not_marked() -> None:
    assert "<mark" not in "".join(pages._marked("heat it", "this recipe lacks every detail that one needs"))


def test_very_long_texts_are_not_compared() -> None:
    assert "<mark" not in "".join(pages._marked("a " * 2_000, "b"))


def test_edits_stand_where_they_were_made() -> None:
    made = explore.edits_html("heat at 500 °C slowly", [EDIT])
    assert made.startswith("<div")
    assert '">500 °C</del><ins' in made
    assert 'title="too hot">1000 °C</ins> slowly</div>' in made
    assert "1 edit" in repr(made)


def test_text_without_edits_is_the_text() -> None:
    assert Reader(explore.edits_html("a < b", [])).text == "a < b"


@given(st.data())
def test_the_inserted_words_with_the_rest_are_the_perturbed_text(data: st.DataObject) -> None:
    text = data.draw(st.text("ab <&\n", min_size=4, max_size=30))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=4)))
    edits = [Edit(a, b, text[a:b], "<new>", "k") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    rows = [{name: getattr(edit, name) for name in ("start", "end", "old", "new", "kind", "why")} for edit in edits]
    made = explore.edits_html(text, rows).split("<details>")[0]
    kept = "".join(part.split("</del>")[-1] for part in made.split("<del"))
    assert Reader(kept).text == apply(text, edits)


def test_scores_and_anchor_stand_on_one_scale() -> None:
    seen = Reader(explore.pair_html(pair(anchor_score=4.0))).text
    assert "the boxes are the nearest half steps" in seen
    assert "R A" in seen


def test_a_pair_shows_the_recipe_and_why_it_is_wrong(tmp_path: Path) -> None:
    made = explore.show_pairs(run(tmp_path, [pair()]), n=1, seed=42)
    assert "500 °C → 1000 °C: too hot" in Reader(made).text
    assert "1 of 1 pairs" in repr(made)


def test_which_pairs_are_shown_does_not_depend_on_their_order(tmp_path: Path) -> None:
    rows = [pair(pair_key=f"k{n}", sample_id=f"s{n}") for n in range(9)]
    assert explore.show_pairs(run(tmp_path, rows), n=2, seed=1) == explore.show_pairs(
        run(tmp_path, rows[::-1]), n=2, seed=1
    )
    assert explore.show_pairs(run(tmp_path, rows), n=9, seed=1) != explore.show_pairs(run(tmp_path, rows), n=9, seed=2)


def test_judgements_are_shown_by_status(tmp_path: Path) -> None:
    made = explore.show_judgements(run(tmp_path), seed=42, status="refused")
    assert "1 of 1 refused judgements" in Reader(made).text
    assert "blind" in Reader(made).text


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    pytest.importorskip("ipywidgets")
    return explore.pair_browser(run(tmp_path))


def test_filters_narrow_the_pairs(browser: Browser) -> None:
    browser.filters["track"].value = "instruction"
    assert browser.selected["pair_key"].tolist() == ["k2"]
    assert browser.note.value.startswith("1 of 1 · 0 marked")
    browser.filters["track"].value = "any"
    browser.range.value = (1.0, 2.0)
    assert browser.selected["pair_key"].tolist() == ["k1"]


def test_buttons_turn_the_pages_and_stop_at_the_ends(browser: Browser) -> None:
    browser.after.click()
    assert "s2" in Reader(browser.view.value).text
    browser.after.click()
    assert browser.place.value == 2
    browser.before.click()
    browser.before.click()
    assert browser.place.value == 1


def test_nothing_that_passes_the_filters_is_said(browser: Browser) -> None:
    browser.filters["track"].value = "instruction"
    browser.range.value = (1.0, 2.0)
    assert browser.view.value == "nothing passes these filters"
    browser.mark.value = True
    assert browser.marked.empty


def test_marks_follow_their_pair_and_are_exported_without_texts(browser: Browser) -> None:
    browser.after.click()
    browser.mark.value = True
    browser.before.click()
    assert browser.mark.value is False
    browser.after.click()
    assert browser.mark.value is True
    browser.export.click()
    written = pd.read_csv(browser.export_to)
    assert written["pair_key"].tolist() == ["k2"]
    assert not {"chosen", "rejected", "prompt"} & set(written)


def test_a_judged_answer_is_shown_with_its_judgement(tmp_path: Path) -> None:
    made = run(tmp_path)
    made.read("judgements").assign(item_id="i1/0").to_parquet(tmp_path / "data" / "judgements.parquet", index=False)
    assert "Paris." in Reader(explore.show_judgements(made, seed=42)).text


def test_judgements_without_a_score_come_first(tmp_path: Path) -> None:
    pytest.importorskip("ipywidgets")
    browser = explore.judgement_browser(run(tmp_path))
    assert "refused" in Reader(browser.view.value).text
    assert Reader(browser.view.value).tags <= KEPT
    browser.filters["status"].value = "ok"
    assert "Good." in browser.view.value
