"""How the harness meets a method: the contract, building one from its configuration, its card.

A method is a scikit-learn style classifier or regressor made with ``schema``, ``epsilon``, ``delta``,
``random_state``, ``noise_seed``, ``n_jobs`` and its own hyper-parameters, and with ``mode`` where it
has several. Its card states the mode it is in; a configuration cannot say otherwise. This is the only place
where a name in a configuration becomes a class.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lumberjack.accounting.guarantee import PrivacyCard
    from lumberjack.schema import FeatureSchema

ALLOWED_PACKAGES = ("lumberjack", "baselines", "lumberjack_bench")
"""Where methods may come from; ``allow_targets`` in the configuration adds to them."""

SHARED_PARAMETERS = (
    "schema",
    "epsilon",
    "delta",
    "mode",
    "random_state",
    "noise_seed",
    "n_jobs",
)

TUNING_NOTE = "tuned without privacy cost"


class MethodError(ValueError):
    """A method that cannot be built, or that breaks its contract; the message is one line."""


class Method(Protocol):
    """What the harness asks of every method, besides being a scikit-learn estimator.

    It is made with ``schema``, ``epsilon``, ``delta``, ``random_state``, ``noise_seed``, ``n_jobs``
    and its own hyper-parameters, by name; ``sklearn.base.BaseEstimator`` then brings cloning.
    ``X`` is the coded form of :meth:`lumberjack.schema.FeatureSchema.encode`, ``y`` holds codes
    0 to K - 1, or numbers for a regressor (``sklearn.base.is_regressor``); neither is changed. The same seeds give the same predictions, whatever ``n_jobs``,
    and seeds are not used up. What is out of range or does not fit the schema raises a ValueError
    of one line; predicting before fitting raises ``sklearn.exceptions.NotFittedError``. A fitted
    method can be pickled.

    A method may also have ``predict_proba(X)`` (rows that add up to 1, or None where it has no
    probabilities; metrics of probabilities are then missing), ``fit_report() -> dict[str, float]``,
    ``skip(n_rows) -> str | None`` (see :func:`reason_to_skip`) and, where its configuration says
    ``is_tuned``, ``tune(X, y, X_validation, y_validation) -> dict[str, Any]``, which returns the
    chosen hyper-parameters.
    """

    display_name: ClassVar[str]
    """What a person calls it."""

    is_private: ClassVar[bool]
    """Whether it claims privacy; the configuration says the same."""

    def fit(self, X: NDArray[np.float64], y: NDArray[Any]) -> Method:
        """Learn from rows, some classes of which may be missing, and return the method itself."""
        ...

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """Return a class code or number for each row, also for rows with unseen categories."""
        ...

    def privacy_card(self) -> PrivacyCard:
        """Return what is claimed about privacy at its epsilon and delta; works before fitting."""
        ...


def check_target(target: str, allow_targets: Sequence[str] = ()) -> None:
    """Refuse a class that does not come from an allowed package.

    Parameters
    ----------
    target : str
        Dotted path of the class.
    allow_targets : sequence of str
        Packages allowed besides our own.
    """
    allowed = (*ALLOWED_PACKAGES, *(name.rstrip(".") for name in allow_targets))
    if not any(name and target.startswith(f"{name}.") for name in allowed):
        raise MethodError(
            f"method target {target!r} is not in an allowed package ({', '.join(allowed)}). "
            "For a method of your own add allow_targets=[YOUR_PACKAGE]."
        )


def method_class(target: str, allow_targets: Sequence[str] = ()) -> type:
    """Import the class of a method, if it may and can be imported.

    Parameters
    ----------
    target, allow_targets
        As for :func:`check_target`.
    """
    check_target(target, allow_targets)
    module_name, _, class_name = target.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), class_name, None)
    except ModuleNotFoundError as error:
        raise MethodError(f"method target {target!r} cannot be imported: {error}.") from error
    if not inspect.isclass(found):
        raise MethodError(f"method target {target!r} names no class.")
    return found


def build_method(
    config: Mapping[str, Any],
    *,
    schema: FeatureSchema,
    epsilon: float,
    delta: float,
    random_state: Any = None,
    noise_seed: Any = None,
    n_jobs: int = 1,
    allow_targets: Sequence[str] = (),
) -> Any:
    """Build the method that a configuration describes, not fitted.

    Parameters
    ----------
    config : mapping
        The ``method`` part of a run.
    schema : FeatureSchema
        Coded schema of the data set.
    epsilon, delta : float
        Privacy parameters.
    random_state, noise_seed : int, SeedSequence or None
        Seeds of structure and of noise; None takes fresh entropy.
    n_jobs : int
        Threads the method may use.
    allow_targets : sequence of str
        Packages allowed besides our own.

    Raises
    ------
    MethodError
        When the class is not allowed, is missing, or does not take the parameters.
    """
    params = dict(config["params"])
    shared = sorted(set(params) & set(SHARED_PARAMETERS))
    if shared:
        raise MethodError(
            f"method {config['name']}: params may not hold {', '.join(shared)}; the run sets them."
        )
    cls = method_class(config["target"], allow_targets)
    known = inspect.signature(cls).parameters
    unknown = [name for name in params if name not in known]
    if unknown:
        own = [name for name in known if name not in SHARED_PARAMETERS]
        raise MethodError(
            f"method {config['name']}: no parameter {unknown[0]!r}; it has {', '.join(own) or 'none'}. "
            "Correct params in its yaml, or the command."
        )
    mode = {} if config.get("mode") is None else {"mode": config["mode"]}
    if mode and "mode" not in known:
        own = [name for name in known if name not in SHARED_PARAMETERS]
        raise MethodError(
            f"method {config['name']} has no modes, got method.mode={config['mode']}. What it does follows "
            f"from its parameters: {', '.join(own) or 'none'}."
        )
    for name, is_so in (
        ("is_private", getattr(cls, "is_private", None)),
        ("is_tuned", hasattr(cls, "tune") and config.get("is_tuned")),
    ):
        if is_so is not None and bool(config.get(name, is_so)) != bool(is_so):
            raise MethodError(
                f"method {config['name']}: its configuration says {name}: {str(config[name]).lower()}, but "
                f"{cls.__name__} is otherwise. Correct method.{name}."
            )
    return cls(
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        **mode,
        random_state=random_state,
        noise_seed=noise_seed,
        n_jobs=n_jobs,
        **params,
    )


def reason_to_skip(method: Method, n_rows: int) -> str | None:
    """Return why a method cannot be fitted to a table of this kind, or None if it can.

    A classifier is not for numeric targets, nor a regressor for classes. A method that knows beforehand, from its parameters, its schema and the number of rows alone (too
    many classes, a forest too large for memory), says so by ``skip(n_rows)``. That is no failure.

    Parameters
    ----------
    method : Method
        Not fitted.
    n_rows : int
        Number of training rows.
    """
    from sklearn.base import is_regressor

    schema = getattr(method, "schema", None)
    has_numbers = schema is not None and schema.target_bounds is not None
    if is_regressor(method) != has_numbers:
        own, other = ("a number", "classes") if has_numbers else ("a class", "numbers")
        return f"{method.display_name} predicts {other}, but the label of the table is {own}."
    skip = getattr(method, "skip", None)
    reason = None if skip is None else skip(n_rows)
    return str(reason) if reason else None
