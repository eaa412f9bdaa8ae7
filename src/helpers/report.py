"""One page of a run: the executed notebooks' prose, tables and figures, with no script and no request.

The page's own policy forbids scripts and the network. Prose is rendered with raw HTML escaped, text is escaped, and an
output's HTML keeps a list of harmless tags and styles only: what a model wrote cannot act.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import bleach  # type: ignore[import-untyped]
import jinja2
import mistune
import pandas as pd
from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]
from markupsafe import Markup

from helpers import tables
from helpers.runs import STAGES, replacing

__all__ = ["build", "clean"]

TAGS = (
    "a", "b", "br", "caption", "code", "dd", "del", "details", "div", "dl", "dt", "em", "figcaption", "figure",
    "h4", "h5", "hr", "i", "img", "ins", "li", "mark", "ol", "p", "pre", "s", "small", "span", "strong", "sub",
    "summary", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
)  # fmt: skip
# None of these takes an address, so that no style can ask for one.
STYLES = (
    "background-color", "border", "border-bottom", "border-collapse", "border-left", "border-top", "caption-side",
    "color", "display", "font-style", "font-variant-numeric", "font-weight", "gap", "grid-template-columns", "margin",
    "max-width", "opacity", "overflow-wrap", "padding", "text-align", "text-decoration", "vertical-align",
    "white-space",
)  # fmt: skip
SIMPLE = {"rules": "rules that are built into this package", "local": "a small language model on this machine"}


@dataclass(frozen=True)
class Heading:
    """An entry of the page's navigation."""

    level: int
    anchor: str
    text: str


def build(folder: Path, manifest: Mapping[str, Any] | None = None) -> Path:
    """Write <folder>/report.html from the executed notebooks and return its path.

    `manifest` is read from the folder when it is not given; without one the page says that the run is not finished.
    Raises FileNotFoundError when no notebook has been executed.
    """
    notebooks = [folder / "notebooks" / f"{stage}.ipynb" for stage in STAGES]
    executed = [path for path in notebooks if path.exists()]
    if not executed:
        raise FileNotFoundError(f"{folder} holds no executed notebook; run `plumbline run` first")
    kept = folder / "manifest.json"
    if manifest is None and kept.exists():
        manifest = json.loads(kept.read_text(encoding="utf-8"))
    headings: list[Heading] = []
    chapters = [_chapter(path, headings) for path in executed]
    page = _template().render(
        run_id=folder.name,
        notes=_notes(folder, manifest, [path.stem for path in notebooks if path not in executed]),
        headings=headings,
        chapters=chapters,
        provenance=_provenance(manifest or {}),
    )
    target = folder / "report.html"
    with replacing(target) as beside:
        beside.write_text(page, encoding="utf-8")
    return target


def clean(text: str) -> str:
    """Keep the harmless tags, attributes and styles of an output's HTML; everything else goes, its text stays.

    >>> clean('<b onclick="x()" style="color:red;background:url(//a.b)">hi</b><script>1</script>')
    '<b style="color:red;">hi</b>1'
    """
    styles = CSSSanitizer(allowed_css_properties=STYLES)
    return str(
        bleach.clean(text, tags=TAGS, attributes=_may_stay, protocols=["data"], css_sanitizer=styles, strip=True)
    )


def _may_stay(tag: str, name: str, value: str) -> bool:
    if name == "src":
        return tag == "img" and re.match(r"data:image/(png|svg\+xml);base64,", value) is not None
    return name in ("style", "title", "alt", "scope", "open", "colspan", "rowspan")


def _chapter(path: Path, headings: list[Heading]) -> Markup:
    """Render an executed notebook and add its headings to the navigation."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    prose = mistune.create_markdown(renderer=_Prose(path.stem, headings), plugins=["table", "strikethrough"])
    return Markup("\n").join(Markup(_cell(cell, prose)) for cell in notebook["cells"])


def _cell(cell: Mapping[str, Any], prose: Any) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return str(prose(source)) if cell["cell_type"] == "markdown" else ""
    outputs = "".join(_output(output) for output in cell["outputs"])
    code = f'<details class="code"><summary>code</summary><pre>{html.escape(source)}</pre></details>'
    return f"{code}{outputs}"


class _Prose(mistune.HTMLRenderer):
    """Prose with raw HTML escaped, headings one level down and in the navigation, links between chapters."""

    def __init__(self, stage: str, headings: list[Heading]) -> None:
        super().__init__(escape=True)
        self.stage, self.headings = stage, headings

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        slug = re.sub(r"\W+", "-", html.unescape(re.sub("<[^>]*>", "", text))).strip("-").lower()
        anchor = self.stage if level == 1 else f"{self.stage}-{slug}"
        self.headings.append(Heading(level, anchor, html.unescape(re.sub("<[^>]*>", "", text))))
        return f'<h{level + 1} id="{anchor}">{text}</h{level + 1}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        chapter = re.fullmatch(r"(\w+)\.ipynb", url)
        return super().link(text, f"#{chapter[1]}" if chapter else url, title)


def _output(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _text("".join(output["text"]), "stream" if output["name"] == "stdout" else "stream aside")
    if output["output_type"] == "error":
        return _text(f"{output['ename']}: {output['evalue']}", "error")
    data = {kind: "".join(value) if isinstance(value, list) else value for kind, value in output["data"].items()}
    plain = data.get("text/plain", "")
    if "application/vnd.jupyter.widget-view+json" in data:
        return '<p class="aside">An interactive view is here in JupyterLab.</p>'
    if "text/html" in data:
        return f'<div class="output">{clean(data["text/html"])}</div>'
    if "image/svg+xml" in data:
        return _image("svg+xml", base64.b64encode(data["image/svg+xml"].encode()).decode(), plain)
    if "image/png" in data:
        return _image("png", data["image/png"], plain)
    return _text(plain, "stream") if plain != "None" else ""


def _text(text: str, kind: str) -> str:
    without_colours = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return f'<pre class="{kind}">{html.escape(without_colours)}</pre>'


def _image(kind: str, data: str, alt: str) -> str:
    return clean(
        f'<figure><img alt="{html.escape(alt)}" src="data:image/{kind};base64,{"".join(data.split())}"></figure>'
    )


def _notes(folder: Path, manifest: Mapping[str, Any] | None, absent: list[str]) -> list[str]:
    """Return what a reader must know before the numbers: an unfinished run, and judges that are no large models."""
    notes = []
    if manifest is None:
        missing = f"; not executed: {', '.join(absent)}" if absent else ""
        notes.append(f"This run is not finished: it has no manifest{missing}. Its numbers may change.")
    kinds = _kinds(folder, manifest)
    simple = {kind: sorted(name for name in kinds if kinds[name] == kind) for kind in SIMPLE}
    told = [f"{', '.join(names)} ({SIMPLE[kind]})" for kind, names in simple.items() if names]
    if told:
        all_simple = set(kinds.values()) <= set(SIMPLE)
        who = "No large language model" if all_simple else "Not only large language models"
        notes.append(f"{who} took part in this run: {'; '.join(told)}.")
    return notes


def _kinds(folder: Path, manifest: Mapping[str, Any] | None) -> dict[str, str]:
    record = folder / "stages" / "02_judging.json"
    if manifest is None:
        stage = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    else:
        stage = manifest.get("stages", {}).get("02_judging", {})
    return dict(stage.get("counts", {}).get("models", {}))


def _provenance(manifest: Mapping[str, Any]) -> Markup:
    """Return the tables of what the run was made with: its parameters, code and packages, and its files."""
    made = {name: manifest[name] for name in ("created", "code", "python", "platform", "packages") if name in manifest}
    parts = [
        _pairs("Parameters", manifest.get("params", {}).items()),
        _pairs("Made with", made.items()),
        _pairs("Files (SHA-256)", ((name, file["sha256"]) for name, file in manifest.get("outputs", {}).items())),
    ]
    return Markup("").join(Markup(part) for part in parts)


def _pairs(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    table = pd.DataFrame(
        [(name, json.dumps(value, ensure_ascii=False)) for name, value in rows], columns=["what", "value"]
    )
    return (
        f"<details><summary>{title}</summary>{tables.show(table, rows=1_000)._repr_html_()}</details>"
        if len(table)
        else ""
    )


def _template() -> jinja2.Template:
    source = resources.files("helpers").joinpath("data", "report.html.j2").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(source)
