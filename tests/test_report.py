from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers import figures, report, tables
from helpers.figures.files import Shown

PAYLOAD = (
    '<script>alert(1)</script><img src="http://example.org/x.png" onerror="alert(2)"><style>*{display:none}</style>'
)
MODELS = {"stoichiometry": "rules", "smollm2-warm": "local", "gpt": "endpoint"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'


def markdown(*text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": list(text)}


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def result(**data: str) -> dict[str, Any]:
    kinds = {"html": "text/html", "plain": "text/plain", "svg": "image/svg+xml", "png": "image/png"}
    return {"output_type": "execute_result", "data": {kinds[kind]: value for kind, value in data.items()}}


def shown(value: Any) -> dict[str, Any]:
    return result(html=value._repr_html_(), plain=repr(value))


def run_folder(tmp_path: Path, *cells: dict[str, Any], name: str = "05_analysis") -> Path:
    folder = tmp_path / "demo"
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    (folder / "notebooks" / f"{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return folder


def page(tmp_path: Path, *cells: dict[str, Any], manifest: dict[str, Any] | None = None) -> str:
    return report.build(run_folder(tmp_path, *cells), manifest).read_text(encoding="utf-8")


def body(text: str) -> str:
    return text.split("<main")[1]


def manifest() -> dict[str, Any]:
    return {
        "created": "2026-01-01T00:00:00+00:00",
        "params": {"seed": 42},
        "outputs": {"data/items.parquet": {"sha256": "ab", "bytes": 1}},
        "stages": {"02_judging": {"counts": {"models": MODELS}}},
    }


def test_nothing_that_a_model_wrote_can_act(tmp_path: Path) -> None:
    made = page(
        tmp_path,
        markdown(PAYLOAD),
        code(PAYLOAD, result(html=PAYLOAD), result(plain=PAYLOAD), result(png="AAAA", plain=PAYLOAD)),
        code("", {"output_type": "stream", "name": "stdout", "text": [PAYLOAD]}),
        code("", {"output_type": "error", "ename": "ValueError", "evalue": PAYLOAD, "traceback": []}),
        manifest=manifest() | {"params": {"recipes": PAYLOAD}},
    )
    tags = re.findall(r"<(script|style|iframe|link|object|form)\b", body(made))
    assert tags == []
    attributes = " ".join(re.findall(r"<[a-z][^>]*>", re.sub(r'alt="[^"]*"', "", body(made))))
    assert re.findall(r'src="[^"]*"', attributes) == ['src="data:image/png;base64,AAAA"']
    assert " on" not in attributes
    assert "default-src 'none'" in made


def test_no_address_of_another_machine_is_asked_for(tmp_path: Path) -> None:
    made = page(tmp_path, code("", result(html='<div style="background-image:url(http://a.b)">x</div>')))
    assert "http" not in re.sub(r"http-equiv", "", made)


def test_our_tables_and_figures_pass_unchanged(tmp_path: Path) -> None:
    table = tables.show(pd.DataFrame({"judge": ["a & b"], "share": [0.5]}), "Shares")
    made = page(tmp_path, code("", shown(table), shown(Shown(SVG, 'A "caption"'))))
    assert report.clean(table._repr_html_()) in made
    assert "font-variant-numeric:tabular-nums" in made
    assert (
        '<img alt="A &quot;caption&quot;" style="max-width:100%;background-color:#fff;" src="data:image/svg+xml' in made
    )
    assert made.count("A &quot;caption&quot;</figcaption>") == 1


def test_headings_make_the_navigation(tmp_path: Path) -> None:
    made = page(tmp_path, markdown("# 5. Analysis"), markdown("## 5.1 Score *deltas* & more\n", "### deeper"))
    links = re.findall(r'<li class="level-(\d)"><a href="#([^"]+)">([^<]+)', made)
    assert links == [
        ("1", "05_analysis", "5. Analysis"),
        ("2", "05_analysis-5-1-score-deltas-more", "5.1 Score deltas &amp; more"),
    ]
    for _, anchor, _ in links:
        assert f'id="{anchor}"' in made


def test_links_between_notebooks_stay_on_the_page(tmp_path: Path) -> None:
    assert '<a href="#04_pairing">4. Pairing</a>' in page(tmp_path, markdown("Back: [4. Pairing](04_pairing.ipynb)"))


def test_code_is_there_but_folded(tmp_path: Path) -> None:
    made = page(tmp_path, code("x < 1"))
    assert '<details class="code"><summary>code</summary><pre>x &lt; 1</pre></details>' in made


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    made = page(tmp_path, markdown("# 5. Analysis"))
    assert "This run is not finished" in made
    assert "01_sampling, 02_judging, 03_anchoring, 04_pairing" in made
    assert "not finished" not in page(tmp_path, markdown("# 5. Analysis"), manifest=manifest())


def test_a_manifest_in_the_folder_is_read(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, markdown("# 5. Analysis"))
    (folder / "manifest.json").write_text(json.dumps(manifest()))
    made = report.build(folder).read_text()
    assert "not finished" not in made
    assert "data/items.parquet" in made


def test_verdicts_of_rules_and_small_models_are_said_first(tmp_path: Path) -> None:
    made = page(tmp_path, markdown("# 5. Analysis"), manifest=manifest())
    told = (
        "stoichiometry (rules that are built into this package); smollm2-warm (a small language model on this machine)"
    )
    assert told in made
    assert made.index(told) < made.index('id="05_analysis"')
    assert "gpt" not in body(made)
    assert "Not only large language models took part" in made


def test_a_run_without_any_language_model_of_size_says_so(tmp_path: Path) -> None:
    counts = {"counts": {"models": {"stoichiometry": "rules"}}}
    made = page(tmp_path, markdown("# 5. Analysis"), manifest=manifest() | {"stages": {"02_judging": counts}})
    assert "No large language model took part in this run: stoichiometry (rules" in made


def test_an_unfinished_run_reads_its_judges_from_the_stage(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, markdown("# 2. Judging"), name="02_judging")
    (folder / "stages").mkdir()
    (folder / "stages" / "02_judging.json").write_text(json.dumps({"counts": {"models": MODELS}}))
    assert "stoichiometry (rules" in report.build(folder).read_text()


def test_a_failed_notebook_shows_its_error_without_colour_codes(tmp_path: Path) -> None:
    error = {"output_type": "error", "ename": "ValueError", "evalue": "\x1b[31mbad\x1b[0m", "traceback": []}
    assert '<pre class="error">ValueError: bad</pre>' in page(tmp_path, code("", error))


def test_a_widget_leaves_a_line_and_none_leaves_nothing(tmp_path: Path) -> None:
    widget = {
        "output_type": "display_data",
        "data": {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox()"},
    }
    made = page(tmp_path, code("", widget, result(plain="None")))
    assert "An interactive view is here in JupyterLab." in made
    assert "VBox" not in made
    assert ">None<" not in made


def test_a_run_without_notebooks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no executed notebook"):
        report.build(tmp_path)


def test_the_same_run_makes_the_same_page(tmp_path: Path) -> None:
    cells = [markdown("# 5. Analysis"), code("", shown(figures.Shown(SVG, "x")))]
    assert page(tmp_path, *cells, manifest=manifest()) == page(tmp_path, *cells, manifest=manifest())
