"""Algorithms 1 to 3 on random hierarchies, and the public search."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from lumberjack.accounting import calibrate_paper, calibrate_safe, get_delta_safe
from lumberjack.heavy_hitters import (
    GaussianSparseThreshold,
    GaussianSparseThresholdTwoSided,
    Hierarchy,
    find_heavy_hitters,
    mark_heavy_hitters,
    mark_top_down,
)


def chain(height):
    """Parents of a single path of the given height, from the root down."""
    return np.arange(-1, height - 1)


def complete_tree(branching, height):
    """Parents of a complete tree, level by level."""
    n_inner = sum(branching**level for level in range(height - 1))
    return np.concatenate(([-1], np.repeat(np.arange(n_inner), branching)))


@st.composite
def hierarchies(draw, max_nodes=60):
    """Random trees from bushy to path-like, in random node order."""
    n_nodes = draw(st.integers(1, max_nodes))
    reach = draw(st.integers(1, max_nodes))  # 1 gives a path, large values bushy trees
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parent = np.array(
        [-1] + [generator.integers(max(0, i - reach), i) for i in range(1, n_nodes)], dtype=int
    )
    order = generator.permutation(n_nodes)
    shuffled = np.empty(n_nodes, dtype=int)
    shuffled[order] = np.where(parent >= 0, order[parent], -1)
    return Hierarchy(shuffled)


@st.composite
def counted_hierarchies(draw):
    """A random tree and the counts that random records cause; some end at inner nodes."""
    hierarchy = draw(hierarchies())
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = generator.poisson(draw(st.floats(0, 8)), len(hierarchy))
    for node in np.argsort(-hierarchy.level):
        if hierarchy.parent[node] >= 0:
            counts[hierarchy.parent[node]] += counts[node]
    return hierarchy, counts


class Recorder:
    """Answers by a given rule and remembers which nodes were queried."""

    def __init__(self, rule):
        self.rule = rule
        self.queried = []

    def __call__(self, nodes):
        self.queried.extend(nodes.tolist())
        return self.rule(nodes)


def most_touches(hierarchy, queried):
    """Largest number of queried nodes on a path from the root."""
    touches = np.bincount(queried, minlength=len(hierarchy))
    for node in np.argsort(hierarchy.level):
        if hierarchy.parent[node] >= 0:
            touches[node] += touches[hierarchy.parent[node]]
    return touches.max()


@settings(deadline=None, max_examples=300)
@given(
    hierarchies(), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 9)
)
def test_each_record_is_touched_at_most_one_plus_log2_of_the_height_times(
    hierarchy, seed, share_of_yes, taller
):
    # Whatever the answers are, even contradictory ones.
    generator = np.random.default_rng(seed)
    recorder = Recorder(lambda nodes: generator.random(nodes.size) < share_of_yes)
    height = hierarchy.height + taller
    is_heavy = mark_heavy_hitters(hierarchy, recorder, height=height)
    assert most_touches(hierarchy, recorder.queried) <= 1 + math.floor(math.log2(height))
    assert len(set(recorder.queried)) == len(recorder.queried)
    below = hierarchy.parent >= 0
    assert np.all(is_heavy[hierarchy.parent[below]] | ~is_heavy[below])


@settings(deadline=None, max_examples=200)
@given(counted_hierarchies(), st.floats(-1, 60))
def test_without_noise_exactly_the_counts_above_the_threshold_are_heavy(counted, tau):
    hierarchy, counts = counted
    for search in (mark_heavy_hitters, mark_top_down):
        is_heavy = search(hierarchy, lambda nodes: counts[nodes] > tau)
        np.testing.assert_array_equal(is_heavy, counts > tau)


@settings(deadline=None, max_examples=200)
@given(
    counted_hierarchies(),
    st.integers(0, 2**32 - 1),
    st.floats(0, 40),
    st.floats(0, 20),
    st.floats(0, 20),
)
def test_nodes_outside_the_interval_of_wrong_answers_are_judged_right(counted, seed, tau, a, b):
    hierarchy, counts = counted
    generator = np.random.default_rng(seed)

    def answer(nodes):
        wild = generator.random(nodes.size) < 0.5
        return np.where(counts[nodes] <= tau - a, False, (counts[nodes] >= tau + b) | wild)

    is_heavy = mark_heavy_hitters(hierarchy, answer)
    assert not is_heavy[counts <= tau - a].any()
    assert is_heavy[(counts >= tau + b) & (counts > tau - a)].all()


def literal_algorithm_1(hierarchy, answer):
    """The paper's pseudocode, one node at a time on explicit sets of nodes."""
    mark, queried = {}, []
    parent = hierarchy.parent

    def path_up(node):
        while node >= 0:
            yield node
            node = parent[node]

    def is_below(node, top):
        return top in path_up(node)

    def run(nodes, height):
        if not nodes:
            return
        top_level = min(hierarchy.level[u] for u in nodes)
        middle = height // 2
        for u in [u for u in nodes if hierarchy.level[u] - top_level == middle]:
            if u not in mark:
                queried.append(u)
                if answer(np.array([u]))[0]:
                    mark.update(dict.fromkeys(path_up(u), "Heavy"))
                else:
                    mark.update({v: "Light" for v in range(len(parent)) if is_below(v, u)})
        if height >= 3:
            for v in [u for u in nodes if hierarchy.level[u] - top_level == middle + 1]:
                if mark.get(v) != "Light":
                    run([u for u in nodes if is_below(u, v)], height - middle - 1)
        if height >= 2:
            run([u for u in nodes if hierarchy.level[u] - top_level < middle], middle)

    run(list(range(len(parent))), hierarchy.height)
    return mark, queried


@settings(deadline=None, max_examples=100)
@given(hierarchies(max_nodes=25), st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.5, 0.8]))
def test_the_search_asks_and_marks_as_the_pseudocode_does(hierarchy, seed, share_of_yes):
    answers = np.random.default_rng(seed).random(len(hierarchy)) < share_of_yes
    recorder = Recorder(lambda nodes: answers[nodes])
    is_heavy = mark_heavy_hitters(hierarchy, recorder)
    mark, queried = literal_algorithm_1(hierarchy, lambda nodes: answers[nodes])
    assert sorted(queried) == sorted(recorder.queried)
    assert set(mark) == set(range(len(hierarchy)))  # every node ends up marked
    assert {u for u in mark if mark[u] == "Heavy"} == set(np.flatnonzero(is_heavy).tolist())


@settings(deadline=None, max_examples=100)
@given(hierarchies(), st.integers(0, 2**32 - 1))
def test_the_top_down_baseline_asks_only_below_heavy_nodes(hierarchy, seed):
    generator = np.random.default_rng(seed)
    recorder = Recorder(lambda nodes: generator.random(nodes.size) < 0.7)
    is_heavy = mark_top_down(hierarchy, recorder)
    assert most_touches(hierarchy, recorder.queried) <= hierarchy.height
    for node in range(len(hierarchy)):
        above = hierarchy.parent[node]
        assert (node in recorder.queried) == (above < 0 or is_heavy[above])


def test_a_ragged_tree_by_hand():
    # 0 - 1 - 2 - 3 - 4 and 0 - 5: h = 5, the middle is level 2. With counts 9, 8, 6, 2, 1 and 1
    # and tau 5, node 2 is asked first (yes: 0, 1, 2 Heavy), then below it level 3 + 1 = 4 (no),
    # then 3 (no). Node 5 ends above the middle and is asked last, on its own.
    hierarchy = Hierarchy([-1, 0, 1, 2, 3, 0])
    counts = np.array([9, 8, 6, 2, 1, 1])
    recorder = Recorder(lambda nodes: counts[nodes] > 5)
    is_heavy = mark_heavy_hitters(hierarchy, recorder)
    assert is_heavy.tolist() == [True, True, True, False, False, False]
    assert recorder.queried == [2, 4, 3, 5]


class NextAnswers:
    """Replays answers and remembers which nodes were asked; stops when it runs out."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, nodes):
        if len(self.asked) + nodes.size > len(self.answers):
            raise LookupError
        self.asked.extend(nodes.tolist())
        return np.array(self.answers[len(self.asked) - nodes.size : len(self.asked)])


def output_law(hierarchy, yes_probability):
    """Exact probability of every set of heavy nodes, by following every course of the search."""
    law = {}
    courses = [()]
    while courses:
        answers = courses.pop()
        replay = NextAnswers(answers)
        try:
            is_heavy = mark_heavy_hitters(hierarchy, replay)
        except LookupError:
            courses += [(*answers, False), (*answers, True)]
            continue
        probability = math.prod(
            yes_probability[node] if yes else 1 - yes_probability[node]
            for node, yes in zip(replay.asked, answers, strict=True)
        )
        key = is_heavy.tobytes()
        law[key] = law.get(key, 0.0) + probability
    return law


@pytest.mark.parametrize(
    ("parent", "counts"),
    [
        (chain(4), [1, 0, 0, 0]),
        (chain(7), [9, 8, 7, 7, 6, 0, 0]),
        (complete_tree(2, 3), [5, 3, 1, 2, 0, 1, 0]),
        (complete_tree(2, 3), [0, 0, 0, 0, 0, 0, 0]),
        ([-1, 0, 1, 2, 0], [12, 10, 9, 8, 2]),
    ],
)
def test_the_exact_law_of_the_output_on_neighbours_stays_within_delta(parent, counts):
    epsilon, delta = 0.6, 0.03
    hierarchy = Hierarchy(parent)
    counts = hierarchy.check_counts(counts)
    noise = calibrate_safe(epsilon, delta, 1 + math.floor(math.log2(hierarchy.height)))

    def law(node_counts):
        yes = ndtr((node_counts - noise.threshold) / noise.sigma)
        return output_law(hierarchy, np.where(node_counts > 0, yes, 0.0))

    without = law(counts)
    assert sum(without.values()) == pytest.approx(1, abs=1e-12)
    largest = 0.0
    for last in range(len(hierarchy)):  # the added record's path may end anywhere
        more = counts.copy()
        node = last
        while node >= 0:
            more[node] += 1
            node = hierarchy.parent[node]
        with_record = law(more)
        for first, second in ((with_record, without), (without, with_record)):
            spent = sum(
                max(0.0, p - math.exp(epsilon) * second.get(key, 0.0)) for key, p in first.items()
            )
            assert spent <= delta
            largest = max(largest, spent)
    assert largest > 0


def test_yes_is_answered_with_the_gaussian_probability():
    # 40,000 queries each: the standard deviation of the share of yes is at most 0.0025.
    query = GaussianSparseThreshold(3.0, 11.0, 10.0, np.random.default_rng(3))
    for count in (1, 5, 9, 11, 14, 25):
        share = query(np.full(40_000, count)).mean()
        assert share == pytest.approx(ndtr((count - 11) / 3), abs=0.0125)


def test_empty_nodes_are_never_heavy_at_threshold_one_plus_margin():
    generator = np.random.default_rng(5)
    # (1 + margin) - margin - 1 is not 0 in floats where 1 + margin crosses a power of two.
    margins = 2.0 ** generator.integers(1, 12, 300) - generator.uniform(0, 1, 300)
    assert ((1 + margins) - margins - 1 < 0).any()
    for margin in margins:
        # Noise far beyond the margin would pass half of them if the floor leaked.
        for kind in (GaussianSparseThreshold, GaussianSparseThresholdTwoSided):
            query = kind(1e6, 1 + margin, margin, generator)
            assert not query(np.zeros(50)).any()
        assert GaussianSparseThreshold(1e6, 1 + margin, margin, generator)(np.ones(200)).any()


def test_a_higher_threshold_raises_the_floor_with_it():
    query = GaussianSparseThreshold(1e6, 14.0, 10.0, np.random.default_rng(0))
    assert not query(np.full(500, 3)).any()
    assert query(np.full(500, 4)).any()


def test_the_two_sided_query_errs_by_at_most_one_plus_margin_with_certainty():
    sigma, margin, tau = 50.0, 20.0, 21.0  # noise far beyond the margin
    query = GaussianSparseThresholdTwoSided(sigma, tau, margin, np.random.default_rng(1))
    assert query(np.full(2000, 42)).all()  # tau + margin + 1
    assert not query(np.full(2000, 0)).any()  # tau - margin - 1
    between = query(np.full(2000, 41))
    assert 0 < between.mean() < 1


@settings(deadline=None, max_examples=60)
@given(counted_hierarchies(), st.integers(0, 2**32 - 1), st.sampled_from(["safe", "paper"]))
def test_the_public_search_is_ancestor_closed_and_never_reports_empty_nodes(
    counted, seed, accounting
):
    hierarchy, counts = counted
    for method, mechanism in itertools.product(
        ("binary_search", "top_down"), ("sparse", "two_sided")
    ):
        found = find_heavy_hitters(
            hierarchy.parent,
            counts,
            epsilon=20.0,
            delta=0.2,
            method=method,
            mechanism=mechanism,
            accounting=accounting,
            generator=np.random.default_rng(seed),
        )
        assert not found.is_heavy[counts == 0].any()
        below = hierarchy.parent >= 0
        assert np.all(found.is_heavy[hierarchy.parent[below]] | ~found.is_heavy[below])
        if mechanism == "two_sided":
            reach = 1 + found.noise.margin
            assert found.is_heavy[counts >= found.threshold + reach].all()
            assert not found.is_heavy[counts <= found.threshold - reach].any()


def test_misjudged_nodes_stay_within_the_accuracy_bound():
    # Lemma 5 allows a failure in a tenth of the searches.
    generator = np.random.default_rng(8)
    parent = complete_tree(3, 5)
    hierarchy = Hierarchy(parent)
    n_failures, furthest = 0, 0.0
    for _ in range(200):
        leaves = np.flatnonzero(hierarchy.level == 4)
        counts = np.zeros(len(hierarchy), dtype=int)
        counts[leaves] = generator.integers(0, 60, leaves.size)
        for node in np.argsort(-hierarchy.level):
            if parent[node] >= 0:
                counts[parent[node]] += counts[node]
        found = find_heavy_hitters(parent, counts, epsilon=1.0, delta=1e-4, generator=generator)
        wrong = found.is_heavy != (counts > found.threshold)
        error = np.abs(counts - found.threshold)[wrong].max(initial=0.0)
        furthest = max(furthest, error)
        n_failures += error > found.get_error_bound(n_records=int(counts[0]), beta=0.1)
    assert n_failures <= 20
    assert furthest > found.noise.sigma  # noise did cause errors, so the bound was at work


def test_the_result_says_what_was_spent():
    parent = complete_tree(2, 7)
    hierarchy = Hierarchy(parent)
    counts = 200 * 2 ** (6 - hierarchy.level)
    found = find_heavy_hitters(
        parent, counts, epsilon=1.0, delta=1e-6, generator=np.random.default_rng(0)
    )
    assert found.is_heavy.all()
    assert found.heavy_nodes.tolist() == list(range(127))
    assert found.n_queries_per_record == 3  # 1 + floor(log2 7)
    assert found.noise == calibrate_safe(1.0, 1e-6, 3)
    assert found.threshold == 1 + found.noise.margin
    assert (found.guarantee.epsilon, found.guarantee.delta) == (1.0, 1e-6)
    assert found.ledger.total == found.guarantee
    assert found.ledger.accounting == "safe"
    release = found.ledger.releases[0]
    assert release.n_queries_per_record == 3
    assert get_delta_safe(1.0, 3, release.parameters["sigma"], release.parameters["margin"]) <= 1e-6
    by_paper = find_heavy_hitters(
        parent, counts, epsilon=1.0, delta=1e-6, accounting="paper", method="top_down"
    )
    assert by_paper.n_queries_per_record == 7
    assert by_paper.noise == calibrate_paper(1.0, 1e-6, 7)
    # A public height above that of the listed nodes is paid for.
    taller = find_heavy_hitters(chain(3), [50, 40, 30], epsilon=8.0, delta=1e-6, height=1000)
    assert taller.n_queries_per_record == 10


def test_the_same_generator_gives_the_same_answer_and_fresh_entropy_does_not():
    counts = np.full(200, 30)
    parent = chain(200)

    def search(generator):
        found = find_heavy_hitters(parent, counts, epsilon=1.0, delta=1e-3, generator=generator)
        return found.is_heavy.tolist()

    assert search(np.random.default_rng(4)) == search(np.random.default_rng(4))
    assert len({tuple(search(None)) for _ in range(40)}) > 1


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        *(({"parent": parent}, "parent") for parent in ([], [[-1, 0]], [-1.0, 0.0], [-1, 7])),
        *(({"parent": parent}, "one root") for parent in ([-1, -1], [1, 0])),
        ({"parent": [-1, 2, 1]}, "node 1 is not below the root"),
        *(({"counts": counts}, "counts") for counts in ([3, 2], [3, -1, 1], [3, 1.5, 1])),
        *(({"counts": counts}, "whole numbers") for counts in ([3, math.nan, 1], [math.inf, 1, 1])),
        ({"counts": [3, 2, 2]}, "its children count 4"),
        *(({name: 0}, name) for name in ("epsilon", "delta", "height")),
        *(({name: "other"}, name) for name in ("mechanism", "method", "accounting")),
        ({"threshold": 3}, "at least 1 + margin"),
        ({"height": 1}, "height"),
        ({"height": 2.0}, "height"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(changes, word):
    valid = {"parent": [-1, 0, 0], "counts": [3, 2, 1], "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the message is compared below
        find_heavy_hitters(**(valid | changes))
    assert word in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_queries_refuse_impossible_noise():
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match="sigma"):
        GaussianSparseThreshold(0.0, 11.0, 10.0, generator)
    with pytest.raises(ValueError, match="margin"):
        GaussianSparseThresholdTwoSided(1.0, 11.0, -1.0, generator)
    with pytest.raises(ValueError, match="beta"):
        find_heavy_hitters([-1], [5], epsilon=1.0, delta=1e-6).get_error_bound(
            n_records=5, beta=1.0
        )
