"""The draw depends on a row's own key and on nothing else."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers import principles
from helpers.principles import multinomial

rows = st.lists(
    st.tuples(st.sampled_from(principles.subsets()), st.text(max_size=8), st.integers(0, 11)), min_size=1, max_size=30
)
seeds = st.integers(0, 2**70)
mixes = st.sampled_from(["code", "readme"])


def draw(table, seed, mix):
    subsets, ids, slots = zip(*table, strict=True)
    return principles.draw(subsets, ids, slots, seed=seed, mix=mix).tolist()


@given(rows, seeds, mixes, st.randoms(use_true_random=False))
def test_any_order_gives_each_row_the_same_principle(table, seed, mix, rng: random.Random):
    order = list(range(len(table)))
    rng.shuffle(order)
    drawn = draw(table, seed, mix)
    assert draw([table[i] for i in order], seed, mix) == [drawn[i] for i in order]


@given(rows, rows, seeds, mixes)
def test_more_rows_change_no_draw(table, more, seed, mix):
    assert draw(table + more, seed, mix)[: len(table)] == draw(table, seed, mix)


@given(rows, seeds, mixes)
def test_only_principles_of_the_subset_are_drawn(table, seed, mix):
    for (subset, _, _), principle in zip(table, draw(table, seed, mix), strict=True):
        assert principles.expected(subset, mix)[principle] > 0


@given(st.lists(st.integers(0, 12), min_size=2, max_size=4).filter(any), st.integers(1, 9))
def test_a_p_value_is_a_probability(counts, weight):
    shares = np.array([weight, *[1] * (len(counts) - 1)], dtype=float)
    fit = multinomial.fit(np.array(counts), shares / shares.sum())
    assert 0 <= fit.p_value <= 1
