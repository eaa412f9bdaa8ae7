"""Progress: plain lines in a batch, one live line otherwise."""

import re

import pytest

from helpers.progress import Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_batch_prints_one_line_in_thirty_seconds_and_one_at_the_end(capsys):
    clock = Clock()
    with Progress(1_000, "Judging", interactive=False, clock=clock) as progress:
        progress.add(stored=100)
        for _ in range(65):
            clock.now += 1.0
            progress.add(done=9, failed=1, tokens=1_000, cost=0.01)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    # After 30 s: 30 x 10 rows and 100 stored; 10 a second, and 600 are left.
    assert lines[0] == (
        "Judging: 400 of 1,000, 30 failed, 100 stored or repeated, 30,000 tokens, cost 0.3000, "
        "10.0 a second, about 60 s left"
    )
    assert lines[-1].endswith("cost 0.6500, in 65 s")


def test_a_batch_says_so_when_nothing_has_come_yet(capsys):
    clock = Clock()
    progress = Progress(10, "Judging", interactive=False, clock=clock)
    for clock.now in (10.0, 31.0, 40.0):
        progress.tick()
    assert capsys.readouterr().out == "Judging: 0 of 10, none done yet\n"


def test_a_batch_writes_no_carriage_return_and_nothing_to_stderr(capsys):
    assert list(Progress(3, "Pairing", interactive=False).over("abc")) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert re.fullmatch(r"Pairing: 3 of 3, in 0 s\n", captured.out)
    assert captured.err == ""


@pytest.mark.parametrize("total", [0, 1])
def test_a_live_bar_ends_with_its_counts(capsys, total):
    with Progress(total, "Judging", interactive=True) as progress:
        progress.add(done=total, tokens=5)
    assert "5 tokens" in capsys.readouterr().err


def test_an_error_inside_a_loop_passes_through_and_the_count_is_told(capsys):
    with pytest.raises(ZeroDivisionError):
        [1 / number for number in Progress(2, "Pairing", interactive=False).over([1, 0])]
    assert capsys.readouterr().out.startswith("Pairing: 1 of 2")
