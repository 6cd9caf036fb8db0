"""AdditiveForestClassifier: released histograms, then noisy gradient steps over features and random trees.

The stages are in :mod:`lumberjack.additive_cells`, :mod:`lumberjack.additive_terms`,
:mod:`lumberjack.additive_start` and :mod:`lumberjack.descent`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lumberjack.accounting import Group, Guarantee, Ledger, PrivacyCard
from lumberjack.additive_cells import (
    Bins,
    count_bins,
    find_cells,
    find_cells_by_block,
    make_bins,
)
from lumberjack.additive_start import get_start_scores, sum_derivatives, take_step
from lumberjack.additive_terms import (
    Evidence,
    Terms,
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
    DescentRows,
    Model,
    Way,
    check_row_count,
    descend,
    get_way,
    predict_probabilities,
    sensitivity,
    sum_gradient,
    to_gradient,
)
from lumberjack.estimator import CodedRows, make_generator
from lumberjack.noise import FRACTION_BITS, add_noise_to_counts, add_noise_to_sums
from lumberjack.private_classifier import PrivateClassifier
from lumberjack.releases import GAUSSIAN_THEOREM, list_gaussian_releases, repeat, share_out
from lumberjack.schema import FeatureSchema, NumericFeature
from lumberjack.transcript import GaussianRelease, Transcript

_RELEASES = {
    "counts": ("Gaussian mechanism on class counts", "one record changes one count by 1"),
    "values": (
        "Gaussian mechanism on one histogram per numeric feature",
        "one record changes one bin per numeric feature by 1",
    ),
    "histograms": (
        "Gaussian mechanism on one class-by-value histogram per feature",
        "one record changes one cell per feature by 1",
    ),
    "start": (
        "Gaussian mechanism on gradient and Hessian of a clipped logistic model",
        "one record changes the scaled sums by 1 in L2 norm",
    ),
    "descent": (
        "Gaussian mechanism on gradients of the log likelihood",
        "one record changes each gradient, divided by its sensitivity, by 1 in L2 norm",
    ),
}
"""Mechanism and sensitivity of each group of queries, in their order."""

_UNIT = 2.0**-FRACTION_BITS


class Curve(NamedTuple):
    """What one feature adds to the scores of the classes.

    Attributes
    ----------
    values : ndarray of shape (n_bins,)
        Middles of the bins of a numeric feature, or the categories.
    scores : ndarray of float64, shape (n_bins, n_classes)
        In nats, centred over classes.
    noise : ndarray of float64, shape (n_bins,)
        Standard deviation that the noise of the descent has in each score, at most.
    """

    values: NDArray[Any]
    scores: NDArray[np.float64]
    noise: NDArray[np.float64]


class AdditiveForestClassifier(PrivateClassifier):
    """A private additive model of single features and random trees.

    Five groups of Gaussian releases make one guarantee with an exact formula. Histograms of each
    feature by class say which cells to look at and where the model starts; gradients of the log
    likelihood over these cells and over leaves of random trees do the rest. How fine the cells
    are, and how far the descent goes, follows from what was released, in one setting for all tables.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of the whole fit; positive and finite.
    delta : float, default=1e-6
        Failure probability of the whole fit, in (0, 1); choose it well below one over the number
        of records.
    schema, bounds, categories, classes, missing, unknown_labels, random_state, noise_seed
        As for :class:`LumberjackClassifier`.
    n_jobs : int or None, default=None
        Number of threads that share the rows. It never changes the result.

    Attributes
    ----------
    classes_, schema_, guarantee_, ledger_, n_features_in_, feature_names_in_
        As for :class:`LumberjackClassifier`.
    terms_ : Terms
        Cells, evidence and shares of the norm, from the released histograms.
    start_weights_ : ndarray of shape (n_features,)
        Of the evidence of each feature.
    log_shares_ : ndarray of shape (n_classes,)
        Released log class shares, centred.
    model_ : Model
        What the descent adds.
    feature_importances_ : ndarray of shape (n_features,)
        Variance of what each feature adds by itself, over the released histograms.

    Examples
    --------
    >>> import numpy as np
    >>> from lumberjack import AdditiveForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(5000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> model = AdditiveForestClassifier(epsilon=2, bounds=(0, 1), classes=[0, 1]).fit(X, y)
    >>> [release.name for release in model.ledger_.releases]
    ['counts', 'values', 'histograms', 'start', 'descent']
    """

    display_name: ClassVar[str] = "Additive forest"

    budget: ClassVar[Mapping[str, float]] = {
        "counts": 0.02,
        "values": 0.05,
        "histograms": 0.24,
        "start": 0.02,
        "descent": 0.67,
    }
    """Shares of the squared mu of the whole fit; without numeric features "values" is the descent's."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        schema: FeatureSchema | None = None,
        bounds: Any = None,
        categories: Mapping[Any, Any] | None = None,
        classes: ArrayLike | None = None,
        missing: Literal["raise", "fill"] = "raise",
        unknown_labels: Literal["raise", "drop"] = "raise",
        random_state: Any = None,
        noise_seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.missing = missing
        self.unknown_labels = unknown_labels
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.n_jobs = n_jobs

    def privacy_card(self) -> PrivacyCard:
        """Return what this estimator claims about privacy; it need not be fitted."""
        return PrivacyCard(
            method=self.display_name,
            mode="gaussian",
            claimed=Guarantee(self.epsilon, self.delta),
            source=GAUSSIAN_THEOREM,
            status="holds",
            concerns=(
                "The settings were chosen on validation rows of benchmark data, without privacy cost.",
                *self._concerns(),
            ),
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Variance of what each feature adds by itself, shape (n_features,); they sum to 1.

        All are 0 where no feature adds anything. What a feature tells together with others, through the
        random trees, is not in it.
        """
        check_is_fitted(self)
        terms = self.terms_
        n_features = len(terms.cells.bins.n_bins)
        variances = np.zeros(n_features)
        for f in range(n_features):
            cells = terms.cells.block(f)
            masses, scores = terms.masses[cells], self._get_cell_scores(f)
            variances[f] = masses @ ((scores - masses @ scores) ** 2).sum(axis=1)
        total = float(variances.sum())
        shares: NDArray[np.float64] = variances / total if total > 0 else variances
        return shares

    def get_curve(self, feature: str | int) -> Curve:
        """Return what one feature adds to the scores, by name or position.

        Random trees, and the scaling down of rows with unusually much evidence, are not in it.
        """
        check_is_fitted(self)
        names = list(self.schema_.feature_names)
        if feature not in names and feature not in range(len(names)):
            raise ValueError(f"there is no feature {feature!r}; the features are {names}.")
        f = names.index(feature) if isinstance(feature, str) else int(feature)
        bins, own = self.terms_.cells.bins, self.schema_.features[f]
        cell_of_bin = self.terms_.cells.cell_of_bin[bins.block(f)].astype(np.int64)
        if isinstance(own, NumericFeature):
            edges = np.linspace(own.lower, own.upper, len(cell_of_bin) + 1)
            values = (edges[1:] + edges[:-1]) / 2
        else:
            values = np.array(own.categories, dtype=object)
        norms = self.terms_.squared_norm[self.terms_.cells.block(f)][cell_of_bin]
        noise = np.sqrt(norms) * self.way_.noise
        return Curve(values, self._get_cell_scores(f)[cell_of_bin], noise)

    def _get_cell_scores(self, feature: int) -> NDArray[np.float64]:
        """Return what the cells of a feature add to a row that is not scaled down, centred."""
        cells = self.terms_.cells.block(feature)
        says = self.model_.says[cells]
        if says.shape[1] == 1:
            says = says * np.array([-0.5, 0.5])
        scores: NDArray[np.float64] = (
            says + self.start_weights_[feature] * self.terms_.evidence[cells]
        )
        # Evidence was centred before it was clipped.
        centred: NDArray[np.float64] = scores - scores.mean(axis=1, keepdims=True)
        return centred

    def _share_out(self, schema: FeatureSchema) -> dict[str, Group]:
        """Return the noise of all releases, as if the descent were one step."""
        shares, n_numeric = dict(self.budget), int((schema.n_categories == 0).sum())
        if n_numeric == 0:
            shares["descent"] += shares.pop("values")
        counts = {"values": n_numeric, "histograms": schema.n_features}
        return share_out(self.epsilon, self.delta, shares, counts)

    # The rules that an ablation replaces.

    def _get_terms(
        self, bins: Bins, evidence: Evidence, ratio: float, generator: np.random.Generator
    ) -> Terms:
        return make_terms(bins, evidence, get_design(ratio), generator)

    def _get_start_weights(
        self, weights: NDArray[np.float64], released: NDArray[np.float64], sigma: float
    ) -> NDArray[np.float64]:
        return take_step(weights, released, sigma)

    def _get_way(self, mu: float, n_rows: float, n_classes: int) -> Way:
        return get_way(mu, n_rows, n_classes)

    def _fit_transcript(self, X: Any, y: ArrayLike) -> Transcript:
        """Fit, and return all that was released with its noise, for an audit.

        See :mod:`lumberjack.transcript`. The list also holds what only the data holder may know.
        """
        self._check_parameters()
        coded = self._read_training_rows(X, y)
        transcript: list[GaussianRelease] = []

        def keep(*release: Any) -> None:
            transcript.append(GaussianRelease(*release))

        self._keep(coded, *self._learn(coded, keep))
        return transcript

    def _learn(
        self, coded: CodedRows, watch: Callable[..., None] | None = None
    ) -> tuple[Ledger, dict[str, Any]]:
        """Release all and return the ledger and the fitted attributes.

        `watch` takes the name of each release, what was released divided by the noise's standard
        deviation, and the function of encoded rows and labels that was released, in the same unit.
        """
        schema, n_classes = coded.schema, coded.schema.n_classes
        labels = coded.labels
        check_row_count(len(labels))
        groups = self._share_out(schema)
        split_seed, noise_seeds = self._spawn_seeds(5)
        noise = [make_generator(seed) for seed in noise_seeds]

        def count_classes(_: Any, labels: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.bincount(labels, minlength=n_classes)

        sigma = groups["counts"].sigma
        counts = add_noise_to_counts(count_classes(None, labels), sigma, noise[0])
        _tell(watch, "counts", counts, sigma, count_classes)
        n_rows = max(float(counts.sum()), 10.0)
        class_shares = np.maximum(counts, 0.0) + sigma
        class_shares /= class_shares.sum()
        log_shares = np.log(class_shares)
        log_shares -= log_shares.mean()

        bins = make_bins(schema)
        counted = np.zeros((bins.size, n_classes), dtype=np.int64)
        for rows, values in coded.blocks():
            counted += count_bins(values, labels[rows], bins, n_classes)
        places = np.zeros(bins.size)
        sigma = 1.0
        if "values" in groups:
            sigma = groups["values"].sigma
            is_numeric = np.repeat(~bins.is_category, bins.n_bins + 1)

            def count_values(
                values: NDArray[np.float64], labels: NDArray[np.int64]
            ) -> NDArray[np.int64]:
                by_class = count_bins(values, labels, bins, n_classes)
                return np.asarray(by_class.sum(axis=1)[is_numeric])

            places[is_numeric] = add_noise_to_counts(
                counted.sum(axis=1)[is_numeric], sigma, noise[1]
            )
            _tell(watch, "values", places[is_numeric], sigma, count_values)
        n_groups = get_n_groups(n_rows, n_classes, groups["histograms"].sigma)
        group_of_bin = group_bins(places, bins, n_groups, n_rows, sigma)
        first_group, in_all = join_groups(group_of_bin, bins)

        def count(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
            return add_up_groups(count_bins(values, labels, bins, n_classes), in_all)

        sigma = groups["histograms"].sigma
        histograms = add_noise_to_counts(add_up_groups(counted, in_all), sigma, noise[2])
        _tell(watch, "histograms", histograms, sigma, count)
        evidence = weigh_evidence(
            np.split(histograms, first_group), group_of_bin, bins, class_shares, sigma
        )
        mu = groups["descent"].mu
        ratio = n_rows / n_classes * mu / sensitivity(n_classes)
        terms = self._get_terms(bins, evidence, ratio, make_generator(split_seed))
        cells = find_cells_by_block(coded.blocks(), len(labels), terms.cells)

        sigma = groups["start"].sigma
        first = np.full(schema.n_features, 1 / math.sqrt(schema.n_features))
        model = (terms.cells.first, terms.evidence, first, log_shares)

        def differentiate(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[Any]:
            return _UNIT * sum_derivatives(find_cells(values, terms.cells), labels, *model)

        released = add_noise_to_sums(sum_derivatives(cells, labels, *model), sigma, noise[3])
        _tell(watch, "start", released, sigma, differentiate)
        weights = self._get_start_weights(first, released, sigma)

        def get_rows(cells: Any, labels: NDArray[np.int64]) -> DescentRows:
            model = (terms.cells.first, terms.evidence, weights, log_shares)
            start = get_start_scores(cells, *model)
            return DescentRows(cells, get_row_factors(cells, terms), start, labels)

        kept: list[tuple[Any, Any, DescentRows]] = []

        def get_kept_rows(values: Any, labels: Any) -> DescentRows:
            for one, own, rows in kept:
                if one is values and own is labels:
                    return rows
            kept.append((values, labels, get_rows(find_cells(values, terms.cells), labels)))
            return kept[-1][-1]

        def see_gradient(noisy: NDArray[np.float64], model: Model) -> None:
            def sum_up(values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[Any]:
                rows = get_kept_rows(values, labels)
                sums = sum_gradient(rows, terms.cells.first, *model)
                return _UNIT * to_gradient(sums, terms)

            _tell(watch, "descent", noisy, way.sigma, sum_up)

        way = self._get_way(mu, n_rows, n_classes)
        found = descend(
            get_rows(cells, labels),
            terms,
            way,
            noise[4],
            n_jobs=self.n_jobs,
            watch=None if watch is None else see_gradient,
        )
        groups["descent"] = repeat(groups["descent"], way.n_steps)
        total = Guarantee(self.epsilon, self.delta)
        return list_gaussian_releases(groups.values(), _RELEASES, total), {
            "terms_": terms,
            "start_weights_": weights,
            "log_shares_": log_shares,
            "way_": way,
            "model_": found,
        }

    def _get_scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        terms = self.terms_
        cells = find_cells(values, terms.cells)
        model = (terms.cells.first, terms.evidence, self.start_weights_, self.log_shares_)
        start = get_start_scores(cells, *model)
        factors = get_row_factors(cells, terms)
        return predict_probabilities(cells, factors, start, terms.cells.first, self.model_)


def _tell(
    watch: Callable[..., None] | None,
    name: str,
    noisy: NDArray[np.float64],
    sigma: float,
    add_up: Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[Any]],
) -> None:
    if watch is not None:
        watch(name, noisy.ravel() / sigma, lambda *rows: add_up(*rows).ravel() / sigma)
