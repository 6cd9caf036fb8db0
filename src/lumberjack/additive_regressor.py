"""AdditiveForestRegressor: the library's most accurate private method for numeric targets.

The stages are those of :class:`~lumberjack.AdditiveForestClassifier`, with squared error for the log likelihood:
the scale of the target (:mod:`lumberjack.target_scale`), histograms of a target that counts for an upper and a
lower class in shares, and the descent. Its start is the centre of the target.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lumberjack.accounting import Guarantee, Ledger, PrivacyCard
from lumberjack.additive_cells import find_cells, find_cells_by_block, make_bins, sum_bins
from lumberjack.additive_terms import (
    add_up_groups,
    get_design,
    get_n_groups,
    get_row_factors,
    group_bins,
    join_groups,
    make_terms,
    weigh_evidence,
)
from lumberjack.descent import (
    LONGEST_WAY,
    DescentRows,
    Way,
    add_scores,
    check_row_count,
    descend,
    get_n_steps,
)
from lumberjack.estimator import CodedRows, make_generator
from lumberjack.noise import add_noise_to_sums
from lumberjack.regressor import PrivateRegressor
from lumberjack.releases import GAUSSIAN_THEOREM, list_gaussian_releases, repeat, share_out
from lumberjack.schema import FeatureSchema
from lumberjack.target_scale import release_scale

_NOISE_OF_SPREAD = 0.3
"""Standard deviation that the noise of all steps together may give a score, in those of the target."""

_RELEASES = {
    "target": (
        "Gaussian mechanism on the histogram of the target",
        "one record changes one cell by 1",
    ),
    "histograms": (
        "Gaussian mechanism on sums of the scaled target u and of 1 - u by value of each feature",
        "one record changes the two sums of one cell per feature by at most 1 in L2 norm",
    ),
    "descent": (
        "Gaussian mechanism on sums of clipped residuals, in units of the clip",
        "one record changes the sums of each step by at most 1 in L2 norm",
    ),
}


class AdditiveForestRegressor(PrivateRegressor):
    """Differentially private additive model of single features and random trees, for a numeric target.

    Noisy histograms say where targets lie and what single features tell of them. Then noisy gradient steps
    fit what cells of features and leaves of random trees add, by squared error. One setting for
    all tables and budgets. Neighbouring data sets differ by one record, added or removed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1); choose it well below one over the number
        of records.
    target_bounds : tuple (lower, upper) or None, default=None
        Public bounds of the target, in its own unit; values outside are clipped. Read off `y`, with a
        :class:`PrivacyLeakWarning`, if None.
    schema : FeatureSchema or None, default=None
        Public facts about the table, the target's bounds among them. If None, `bounds`, `categories`
        and `target_bounds` are used.
    bounds : tuple (lower, upper) or mapping of feature to (lower, upper), default=None
        Public bounds of the numeric features, as for :class:`~lumberjack.LumberjackClassifier`.
    categories : mapping of feature to list, default=None
        Public categories of the categorical features, keyed by column name or position.
    missing : {"raise", "fill"}, default="raise"
        What to do with missing or infinite entries of `X`: raise, or use the schema's fill values.
        Those of `y` raise. Whether fit raises is not covered by the guarantee.
    random_state : int, SeedSequence, RandomState, Generator or None, default=None
        Seed of the trees only, which are drawn from what was released and carry nothing else.
    noise_seed : int, SeedSequence or None, default=None
        Seed of the privacy noise. None draws it from the operating system's entropy; a fixed
        value is for experiments, is flagged in the ledger and is not private in deployment.
    n_jobs : int or None, default=None
        Number of threads that share the rows. It never changes the result.

    Attributes
    ----------
    schema_ : FeatureSchema
        The public facts in use.
    scale_ : TargetScale
        Centre, spread and clip, from the released histogram of the target.
    terms_ : Terms
        Cells, evidence and shares of the norm, from the released histograms.
    model_ : Model
        What the descent adds, in units of the clip.
    guarantee_ : Guarantee
        What the whole fit satisfies.
    ledger_ : Ledger
        What was released and how it adds up.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Column names, when fitted on a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import AdditiveForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> model = AdditiveForestRegressor(2, bounds=(0, 1), target_bounds=(0, 10)).fit(X, 10 * X[:, 0])
    >>> print(model.guarantee_)
    (2, 1e-06)-DP, add or remove one record
    """

    display_name: ClassVar[str] = "Additive forest regression"

    budget: ClassVar[Mapping[str, float]] = {"target": 0.03, "histograms": 0.2, "descent": 0.77}
    """Shares of the squared mu of the whole fit."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        target_bounds: tuple[float, float] | None = None,
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        missing: Literal["raise", "fill"] = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.missing = missing
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        return self._card("gaussian", GAUSSIAN_THEOREM)

    def _learn(self, coded: CodedRows) -> tuple[Ledger, dict[str, Any]]:
        schema, shares = coded.schema, coded.labels
        check_row_count(len(shares))
        counts = {"histograms": schema.n_features}
        groups = share_out(self.epsilon, self.delta, self.budget, counts)
        split_seed, noise_seeds = self._spawn_seeds(3)
        noise = [make_generator(seed) for seed in noise_seeds]
        scale = release_scale(shares, groups["target"].sigma, noise[0])
        target = (shares - scale.centre) / scale.width

        sigma = groups["histograms"].sigma
        bins = make_bins(schema)
        n_groups = get_n_groups(scale.n_rows, 2, sigma)
        group_of_bin = group_bins(np.zeros(bins.size), bins, n_groups, scale.n_rows, sigma)
        first_group, in_all = join_groups(group_of_bin, bins)
        sums = np.zeros((bins.size, 2), dtype=np.int64)
        for which, values in coded.blocks():
            sums += sum_bins(values, (target[which].clip(-1.0, 1.0) + 1.0) / 2.0, bins)
        histograms = np.split(
            add_noise_to_sums(add_up_groups(sums, in_all), sigma, noise[1]), first_group
        )
        # Each feature's histogram holds all rows once more, but for unseen categories.
        parts = np.maximum(np.median([one.sum(axis=0) for one in histograms], axis=0), 1.0)
        evidence = weigh_evidence(histograms, group_of_bin, bins, parts / parts.sum(), sigma)

        mu, spread = groups["descent"].mu, scale.spread / scale.width
        design = get_design(scale.n_rows * spread * mu)
        terms = make_terms(bins, evidence, design, make_generator(split_seed))
        way = _get_way(mu, scale.n_rows, spread)
        cells = find_cells_by_block(coded.blocks(), len(shares), terms.cells)
        start = np.zeros((len(shares), 1), dtype=np.float32)
        rows = DescentRows(cells, get_row_factors(cells, terms), start, target)
        model = descend(rows, terms, way, noise[2], n_jobs=self.n_jobs)
        groups["descent"] = repeat(groups["descent"], way.n_steps)
        total = Guarantee(self.epsilon, self.delta)
        fitted = {"scale_": scale, "terms_": terms, "model_": model}
        return list_gaussian_releases(groups.values(), _RELEASES, total), fitted

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        terms, scale = self.terms_, self.scale_
        cells = find_cells(values, terms.cells)
        scores = np.zeros((len(values), 1))
        add_scores(scores, cells, get_row_factors(cells, terms), terms.cells.first, *self.model_)
        lower, upper = self.schema_.target_bounds  # type: ignore[misc]
        shares = (scale.centre + scale.width * scores).clip(0.0, 1.0)
        predicted: NDArray[np.float64] = (lower + (upper - lower) * shares).clip(lower, upper)
        return predicted


def _get_way(mu: float, n_rows: float, spread: float) -> Way:
    """Return how to go, as :func:`lumberjack.descent.get_way` does for classes.

    Squared error is up to four times as curved as the log likelihood, so the way is a quarter as long; and
    its scores are in units of the clip, of which `spread` is the target's standard deviation.
    """
    n_steps = get_n_steps(n_rows)
    length = min(LONGEST_WAY / 4 / n_rows, _NOISE_OF_SPREAD * spread * mu)
    return Way(n_steps, math.sqrt(n_steps) / mu, length)
