"""Lumberjack: differentially private random forests through heavy-hitter detection in trees."""

from lumberjack.accounting import Guarantee, Ledger, NeighbouringRelation, PrivacyCard
from lumberjack.classifier import GuidedLumberjackClassifier, LumberjackClassifier
from lumberjack.forest import DataOutsideSchemaWarning, PrivacyLeakWarning
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature, SchemaError

__all__ = [
    "CategoricalFeature",
    "DataOutsideSchemaWarning",
    "FeatureSchema",
    "Guarantee",
    "GuidedLumberjackClassifier",
    "Ledger",
    "LumberjackClassifier",
    "NeighbouringRelation",
    "NumericFeature",
    "PrivacyCard",
    "PrivacyLeakWarning",
    "SchemaError",
]
