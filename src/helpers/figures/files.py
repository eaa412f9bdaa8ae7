"""Write a figure as PDF, PNG and SVG with the numbers and the caption beside it, and show it in a notebook."""

from __future__ import annotations

import base64
import html
import io
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text

from helpers.figures.style import current, figure_of

__all__ = ["Shown", "check_glyphs", "save", "show"]

# Dates and versions stay out of the files: the same figure is the same bytes.
STAMPS: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
PICTURE = "max-width:100%;background-color:#fff"


@dataclass(frozen=True)
class Shown:
    """A figure for display: an image with its alternative text and caption, complete without a kernel.

    It is HTML around a data URI, which JupyterLab also shows in a notebook that it does not trust.
    """

    svg: str
    caption: str
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Return the caption: what a reader without pictures gets."""
        return self.caption

    def _repr_html_(self) -> str:
        image = base64.b64encode(self.svg.encode()).decode()
        text = html.escape(self.caption)
        picture = f'<img alt="{text}" style="{PICTURE}" src="data:image/svg+xml;base64,{image}">'
        return (
            f'<figure class="mathjax_ignore">{picture}<figcaption style="max-width:46em">{text}</figcaption></figure>'
        )


def show(drawn: Artist, caption: str) -> Shown:
    """Return the picture of axes or a figure with its caption, and close the figure."""
    return _picture(_prepared(drawn), caption)


def save(drawn: Artist, stem: Path, data: pd.DataFrame, caption: str) -> Shown:
    """Write <stem>.pdf, .png (300 dpi), .svg, .csv (the plotted numbers) and .txt (the caption); return the picture.

    Raises ValueError for a width that the style does not have and for a label with a character that no font has.
    """
    fig = _prepared(drawn)
    images = {kind: _bytes(fig, kind) for kind in STAMPS}
    _check_width(images["pdf"], stem.name)
    table = data.to_csv(index=False, lineterminator="\n").encode()
    stem.parent.mkdir(parents=True, exist_ok=True)
    contents = images | {"csv": table, "txt": f"{caption}\n".encode()}
    files = tuple(stem.with_name(f"{stem.name}.{kind}") for kind in contents)
    for file, content in zip(files, contents.values(), strict=True):
        file.write_bytes(content)
    return replace(_picture(fig, caption), files=files)


def check_glyphs(fig: Figure) -> None:
    """Raise ValueError for the first character of a label that none of its fonts can draw."""
    for text in fig.findobj(Text):
        assert isinstance(text, Text)
        known = _characters(tuple(text.get_fontfamily()))
        for character in text.get_text():
            if not character.isspace() and ord(character) not in known:
                raise ValueError(
                    f"the label {text.get_text()!r} has {character!r} (U+{ord(character):04X}), which no font of the "
                    f"figure can draw; rename it, or install a font and add it to figures.style.FONTS"
                )


@cache
def _characters(families: tuple[str, ...]) -> frozenset[int]:
    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in families]
    return frozenset(code for font in fonts for code in font.get_charmap())


def _picture(fig: Figure, caption: str) -> Shown:
    with plt.rc_context({"svg.fonttype": "path"}):  # as outlines it looks the same on every machine
        svg = _bytes(fig, "svg").decode()
    plt.close(fig)
    return Shown(svg, caption)


def _prepared(drawn: Artist) -> Figure:
    """Return the figure of what was drawn, checked, its layout done once for all files."""
    fig = figure_of(drawn)
    check_glyphs(fig)
    fig.set_dpi(
        plt.rcParams["savefig.dpi"]
    )  # letters are hinted by the pixel: laid out at 100 dpi, labels get cut at 300
    fig.draw_without_rendering()
    with plt.rc_context({"figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)
    return fig


def _bytes(fig: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    fig.savefig(file, format=kind, metadata=STAMPS[kind])
    return file.getvalue()


def _check_width(pdf: bytes, name: str) -> None:
    found = re.search(rb"/MediaBox \[\s*0 0 ([\d.]+)", pdf)
    width, style = float(found[1]) / 72 if found else 0.0, current()
    if min(abs(width - style.column), abs(width - style.full)) > 0.01:
        raise ValueError(
            f"figure {name!r} is {width:.2f} in wide, but the style's widths are {style.column:.2f} and "
            f"{style.full:.2f} in; make it with figures.canvas or figures.blank after figures.use_style"
        )
