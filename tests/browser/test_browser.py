"""JupyterLab and the report in headless Chromium: what a reader clicks works, and nothing leaves this machine."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import figures, report, tables
from tests import test_explore, test_report

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path"),
]

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ROOT = Path(__file__).parents[2]
OPENING = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
import pandas as pd
from helpers import explore, figures, tables
from tests import test_explore as toys
rows = [
    toys.pair(pair_key=f"k{{n}}", sample_id=f"s{{n}}", score_delta=0.5 * (1 + n % 4),
              chosen=f"page {{n}} {{toys.PAYLOAD}}", chosen_model=toys.PAYLOAD if n % 2 else "keen",
              track="recipe" if n < 8 else "instruction")
    for n in range(12)
]
run = toys.run(Path("."), rows)
"""


class Watched:
    """A page that remembers the requests that left this machine, the dialogs, and the errors on its console."""

    def __init__(self, page: playwright.Page) -> None:
        self.page, self.left, self.dialogs, self.errors = page, [], [], []
        page.on("request", self._request)
        page.on("dialog", self._dialog)
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _request(self, request: playwright.Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:")):
            self.left.append(request.url)

    def _dialog(self, dialog: playwright.Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@pytest.fixture(scope="module")
def chromium() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def watched(chromium: playwright.Browser) -> Iterator[Watched]:
    context = chromium.new_context(viewport={"width": 1400, "height": 1600})
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the notebooks' runs are kept."""
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, outputs: Path) -> Iterator[tuple[str, str, Path]]:
    """Start JupyterLab on a free port with a home of its own; gives its address, its token and its folder."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    places = {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    places |= {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "PLUMBLINE_OUTPUTS": str(outputs)}
    options = [f"--port={port}", "--ip=127.0.0.1", "--no-browser", "--allow-root", f"--ServerApp.token={token}"]
    options += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly", "--LabApp.news_url="]
    with (home / "log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = subprocess.Popen(command, cwd=folder, env=os.environ | places, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api?token={token}", server)
            yield f"http://127.0.0.1:{port}", token, folder
        finally:
            server.terminate()
            server.wait(20)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(120):
        assert server.poll() is None, "JupyterLab stopped"
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError("JupyterLab did not answer within a minute")


def run_cells(watched: Watched, lab: tuple[str, str, Path], name: str, *cells: str) -> playwright.Page:
    """Write a notebook of these cells and run it in JupyterLab to its end."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    code = [
        {"cell_type": "code", "source": cell, "outputs": [], "metadata": {}, "execution_count": None} for cell in cells
    ]
    notebook = {"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    (lab[2] / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return run_all(watched, lab, name)


def run_all(watched: Watched, lab: tuple[str, str, Path], name: str) -> playwright.Page:
    """Open a notebook in JupyterLab, run it to its end, and return the page."""
    address, token, folder = lab
    cells = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    last = sum(cell["cell_type"] == "code" for cell in cells)
    page = watched.page
    page.goto(f"{address}/lab/workspaces/{name}/tree/{name}.ipynb?token={token}")
    page.get_by_text("| Idle").wait_for(timeout=90_000)
    page.get_by_role("menuitem", name="Run").click()
    page.locator('[data-command="runmenu:run-all"]').click()
    page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt", has_text=f"[{last}]:").wait_for(timeout=180_000)
    return page


def note(page: playwright.Page, text: str) -> playwright.Locator:
    return page.locator(".widget-label", has_text=text)


def test_the_pair_browser_filters_pages_and_marks(watched: Watched, lab: tuple[str, str, Path]) -> None:
    page = run_cells(watched, lab, "pairs", OPENING, "explore.pair_browser(run)")
    note(page, "1 of 12 · 0 marked").wait_for()
    page.get_by_role("button", name="next").click()
    note(page, "2 of 12").wait_for()
    page.get_by_text("page 1 <script>").wait_for()
    page.get_by_text("marked", exact=True).click()
    note(page, "2 of 12 · 1 marked").wait_for()
    page.locator(".widget-dropdown", has_text="track").locator("select").select_option("instruction")
    note(page, "1 of 4 · 1 marked").wait_for()
    page.get_by_role("button", name="export marked").click()
    note(page, "1 marked, written to marked_pairs.csv").wait_for()
    written = (lab[2] / "marked_pairs.csv").read_text()
    assert written.splitlines()[1].startswith("k1,")
    assert "page 1" not in written
    assert watched.dialogs == watched.left == []


def test_arrow_keys_turn_the_pages(watched: Watched, lab: tuple[str, str, Path]) -> None:
    page = run_cells(watched, lab, "keys", OPENING, "explore.pair_browser(run)")
    note(page, "1 of 12").wait_for()
    page.locator(".widget-hslider", has_text="row").locator(".noUi-handle").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    note(page, "3 of 12").wait_for()
    page.keyboard.press("ArrowLeft")
    note(page, "2 of 12").wait_for()


def test_the_analysis_runs_to_its_end_and_its_browser_pages(
    watched: Watched, lab: tuple[str, str, Path], outputs: Path
) -> None:
    """Run the notebooks before it on a few built-in texts, then 05_analysis by Run All."""
    few = ["n_recipes=4", "n_per_subset=1", "completions_per_instruction=1", "bootstrap_samples=50"]
    options = [option for value in few for option in ("-p", value)]
    command = [sys.executable, "-m", "helpers", "run", "params/demo.yaml", "--until", "04_pairing", *options]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"PLUMBLINE_OUTPUTS": str(outputs)}, check=True)
    shutil.copy(ROOT / "notebooks" / "05_analysis.ipynb", lab[2])
    page = run_all(watched, lab, "05_analysis")
    assert page.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    note(page, " marked · click").wait_for()
    page.get_by_role("button", name="next").click()
    note(page, "2 of ").wait_for()
    assert page.locator("figure img").count() >= 8
    assert watched.dialogs == watched.left == []


def test_what_a_model_wrote_is_text_in_every_output(watched: Watched, lab: tuple[str, str, Path]) -> None:
    cells = [
        OPENING,
        "explore.pair_browser(run)",
        "explore.judgement_browser(run)",
        "explore.show_pairs(run, seed=1)",
        "explore.edits_html(toys.PAYLOAD, [toys.EDIT | {'start': 0, 'end': 3, 'why': toys.PAYLOAD}])",
        "tables.show(pd.DataFrame({toys.PAYLOAD: [toys.PAYLOAD]}), toys.PAYLOAD)",
        "figures.Shown('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>', toys.PAYLOAD)",
    ]
    page = run_cells(watched, lab, "hostile", *cells)
    page.wait_for_timeout(2_000)
    assert page.title() != "x"
    assert page.locator(".jp-OutputArea-output img").count() == 1  # the figure of the last cell
    assert page.locator(".jp-OutputArea-output script").count() == 0
    assert page.locator("mjx-container").count() == 0
    assert page.get_by_text('<script>document.title="x"</script>').count() >= 8
    assert watched.dialogs == watched.left == []


def test_a_figure_and_a_pair_show_in_a_notebook_that_is_not_trusted(
    watched: Watched, lab: tuple[str, str, Path]
) -> None:
    address, token, folder = lab
    outputs = [
        test_report.shown(figures.Shown(test_report.SVG, "A caption")),
        test_report.shown(test_explore.explore.pair_html(test_explore.pair())),
    ]
    cells = [test_report.code("", output | {"execution_count": 1, "metadata": {}}) for output in outputs]
    whole = [cell | {"metadata": {}, "execution_count": 1} for cell in cells]
    notebook = {"cells": whole, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (folder / "executed.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    watched.page.goto(f"{address}/lab/workspaces/executed/tree/executed.ipynb?token={token}")
    image = watched.page.get_by_alt_text("A caption")
    image.wait_for(timeout=60_000)
    assert image.evaluate("image => image.naturalWidth") == 9
    assert watched.page.locator("mark").count() == 4


def test_the_report_opens_without_an_error_and_its_navigation_works(watched: Watched, tmp_path: Path) -> None:
    table = tables.show(test_report.pd.DataFrame({"judge": [test_report.PAYLOAD]}), "Judges")
    hostile = test_report.result(html=test_report.PAYLOAD, plain=test_report.PAYLOAD)
    filler = [test_report.markdown("text\n\n" * 60)]
    folder = test_report.run_folder(
        tmp_path,
        test_report.markdown("# 5. Analysis\n\n## 5.1 First"),
        *filler,
        test_report.code("", test_report.shown(table), hostile),
        test_report.code("", test_report.shown(figures.Shown(test_report.SVG, "A caption"))),
        test_report.markdown("## 5.2 Second"),
        *filler,
    )
    page = watched.page
    page.goto(report.build(folder, test_report.manifest()).as_uri())
    page.get_by_role("link", name="5.2 Second").click()
    assert page.url.endswith("#05_analysis-5-2-second")
    playwright.expect(page.locator('[id="05_analysis-5-2-second"]')).to_be_in_viewport()
    assert page.get_by_alt_text("A caption").evaluate("image => image.naturalWidth") == 9
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert watched.errors == watched.dialogs == watched.left == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_readable_in_light_and_dark(chromium: playwright.Browser, tmp_path: Path, scheme: str) -> None:
    folder = test_report.run_folder(tmp_path, test_report.markdown("# 5. Analysis"))
    context = chromium.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(report.build(folder, test_report.manifest()).as_uri())
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.body).{name}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)")
        for name in ("color", "backgroundColor")
    )
    assert (paper - ink > 450) if scheme == "light" else (ink - paper > 450)
    context.close()
