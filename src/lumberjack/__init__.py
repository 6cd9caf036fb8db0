"""Lumberjack: differentially private random forests through heavy-hitter detection in trees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lumberjack.accounting import Guarantee, Ledger, NeighbouringRelation, PrivacyCard
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature, SchemaError

if TYPE_CHECKING:
    from lumberjack.additive_classifier import AdditiveForestClassifier
    from lumberjack.additive_regressor import AdditiveForestRegressor
    from lumberjack.classifier import LumberjackClassifier
    from lumberjack.estimator import DataOutsideSchemaWarning
    from lumberjack.guided_classifier import GuidedLumberjackClassifier
    from lumberjack.public_facts import PrivacyLeakWarning
    from lumberjack.regressor import LumberjackRegressor

__all__ = [
    "AdditiveForestClassifier",
    "AdditiveForestRegressor",
    "CategoricalFeature",
    "DataOutsideSchemaWarning",
    "FeatureSchema",
    "Guarantee",
    "GuidedLumberjackClassifier",
    "Ledger",
    "LumberjackClassifier",
    "LumberjackRegressor",
    "NeighbouringRelation",
    "NumericFeature",
    "PrivacyCard",
    "PrivacyLeakWarning",
    "SchemaError",
]

# The estimators bring numba and scikit-learn, seconds that whoever needs only a schema should not
# wait for.
_LATE = {
    "AdditiveForestClassifier": "lumberjack.additive_classifier",
    "AdditiveForestRegressor": "lumberjack.additive_regressor",
    "GuidedLumberjackClassifier": "lumberjack.guided_classifier",
    "LumberjackClassifier": "lumberjack.classifier",
    "LumberjackRegressor": "lumberjack.regressor",
    "DataOutsideSchemaWarning": "lumberjack.estimator",
    "PrivacyLeakWarning": "lumberjack.public_facts",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
