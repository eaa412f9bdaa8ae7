"""Widgets to page through a table in JupyterLab: filters, keys, marks, export. They need a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["Browser"]

TEXTS = ("prompt", "chosen", "rejected", "text", "reasoning", "response", "changes", "reason")
HINT = "click the round handle, then ← and → turn the pages"


class Browser:
    """A filter for each column, a range, a page, marks, and their export, over the rows of a table.

    `filters` are columns and what they are called, `ranged` is a column of numbers; `render` makes a row's HTML and
    must escape every text in it. `selected` is what the filters leave, `marked` what was marked. An export leaves the
    texts out: a cell that a model wrote could be a formula to a spreadsheet.
    """

    def __init__(
        self,
        rows: pd.DataFrame,
        filters: Mapping[str, str],
        ranged: str,
        render: Callable[[dict[str, Any]], str],
        export_to: Path,
    ) -> None:
        import ipywidgets as widgets

        self.rows, self.ranged, self.render, self.export_to = rows, ranged, render, export_to
        self.selected, self._marks = rows, dict.fromkeys(rows.index, False)
        choices = {name: ["any", *sorted(rows[name].dropna().unique())] for name in filters}
        self.filters = {
            name: widgets.Dropdown(options=choices[name], description=title) for name, title in filters.items()
        }
        low, high = (rows[ranged].min(), rows[ranged].max()) if rows[ranged].notna().any() else (0, 1)
        title = ranged.split("_")[-1]
        self.range = widgets.FloatRangeSlider(value=(low, high), min=low, max=high, step=0.1, description=title)
        self.place = widgets.IntSlider(min=1, max=max(1, len(rows)), description="row", layout={"width": "30em"})
        self.before, self.after = widgets.Button(description="◀ previous"), widgets.Button(description="next ▶")
        self.mark = widgets.Checkbox(description="marked", indent=False, layout={"width": "7em"})
        self.export = widgets.Button(description="export marked")
        self.note, self.view = widgets.Label(), widgets.HTML()
        self._connect()
        wrapped = widgets.Layout(flex_flow="row wrap")
        choose = widgets.HBox([*self.filters.values(), self.range], layout=wrapped)
        turn = widgets.HBox([self.before, self.after, self.place, self.mark, self.export], layout=wrapped)
        self.box = widgets.VBox([choose, turn, self.note, self.view])
        self._draw()

    @property
    def marked(self) -> pd.DataFrame:
        """Return the marked rows without their texts."""
        rows = self.rows[[self._marks[index] for index in self.rows.index]]
        return rows[[name for name in rows if name not in TEXTS]]

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def _connect(self) -> None:
        for control in (*self.filters.values(), self.range):
            control.observe(self._filter, "value")
        self.place.observe(self._draw, "value")
        self.mark.observe(self._mark, "value")
        self.before.on_click(lambda _: self._turn(-1))
        self.after.on_click(lambda _: self._turn(1))
        self.export.on_click(lambda _: self._export())

    def _filter(self, _: object) -> None:
        keep = pd.Series(True, index=self.rows.index)
        for name, control in self.filters.items():
            keep &= True if control.value == "any" else self.rows[name] == control.value
        low, high = self.range.value
        if (low, high) != (self.range.min, self.range.max):  # the full range also keeps rows without a number
            keep &= self.rows[self.ranged].between(low - 1e-9, high + 1e-9)
        self.selected = self.rows[keep]
        self.place.max = max(1, len(self.selected))
        self.place.value = 1
        self._draw()

    def _turn(self, pages: int) -> None:
        self.place.value = min(max(1, self.place.value + pages), self.place.max)

    def _draw(self, _: object = None) -> None:
        place = self.place.value if len(self.selected) else 0
        self.note.value = f"{place} of {len(self.selected):,} · {sum(self._marks.values())} marked · {HINT}"
        self.view.value = "nothing passes these filters"
        if place:
            row = self.selected.iloc[place - 1]
            self.mark.value = self._marks[row.name]
            shown = self.render(dict(zip(self.rows.columns, row, strict=True)))
            self.view.value = f'<div style="line-height:1.5">{shown}</div>'

    def _mark(self, _: object) -> None:
        index = self.selected.index[self.place.value - 1] if len(self.selected) else None
        if index is not None and self._marks[index] != self.mark.value:
            self._marks[index] = self.mark.value
            self._draw()

    def _export(self) -> None:
        if self.marked.empty:
            self.note.value = "nothing is marked, so nothing is written"
            return
        self.marked.to_csv(self.export_to, index=False, lineterminator="\n")
        self.note.value = f"{len(self.marked)} marked, written to {self.export_to.name} in the run's folder"
