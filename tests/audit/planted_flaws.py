"""Forests that claim what they do not keep: each has one flaw that a layer of the audit must find."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lumberjack import GuidedLumberjackClassifier, LumberjackClassifier
from lumberjack.forest import GrownTree, _at_nodes
from lumberjack.growth import Search, grow_tree
from lumberjack.guide import release_cells
from lumberjack.ranks import rank_table
from lumberjack.seeds import seed_sequence
from lumberjack.stacking import Block, StackSums, sum_at_start
from lumberjack.tree import ReleasedTree


class WithoutLeafNoise(GuidedLumberjackClassifier):
    def _release_leaves(self, counts, scale, generator):
        return counts.astype(np.float64)


class WithoutVoteNoise(LumberjackClassifier):
    def _release_leaves(self, counts, scale, generator):
        return np.eye(counts.shape[1])[counts.argmax(axis=1)]


class HalvedLeafNoise(GuidedLumberjackClassifier):
    def _release_leaves(self, counts, scale, generator):
        return super()._release_leaves(counts, scale / 2, generator)


class HalvedGuideNoise(GuidedLumberjackClassifier):
    def _release_cells(self, rows, noise, generator):
        half = noise.scales["guide"] / 2
        return release_cells(rows.columns, rows.labels, rows.schema, half, generator)


def _sum_up(rows, shares, guide):
    return sum_at_start([Block(guide.to_guide_scale(rows.values), rows.labels, shares)], guide)


class WithoutStackNoise(GuidedLumberjackClassifier):
    def _release_stack(self, rows, guide, grown, noise, generator):
        return _sum_up(rows, self._left_out_shares(rows.labels, grown), guide)


class StackOfSensitivityTwo(GuidedLumberjackClassifier):
    def _release_stack(self, rows, guide, grown, noise, generator):
        once = _sum_up(rows, self._left_out_shares(rows.labels, grown), guide)
        noisy = super()._release_stack(rows, guide, grown, noise, generator)
        return StackSums(*(a + b for a, b in zip(noisy, once, strict=True)))


class OneNoiseSeed(GuidedLumberjackClassifier):
    """Guide, trees and stack draw the same numbers."""

    def _again(self):
        return np.random.Generator(np.random.PCG64(seed_sequence(self.noise_seed)))

    def _release_cells(self, rows, noise, generator):
        return super()._release_cells(rows, noise, self._again())

    def _grow(self, rows, coded, tree_key, generator, noise):
        return super()._grow(rows, coded, tree_key, self._again(), noise)

    def _release_stack(self, rows, guide, grown, noise, generator):
        return super()._release_stack(rows, guide, grown, noise, self._again())


def _declared(count):
    """A forest that declares fewer queries of one group than it asks."""

    class Forgetful(GuidedLumberjackClassifier):
        def _get_groups(self, schema):
            structure, others = super()._get_groups(schema)
            return structure, [
                type(group)(group.name, count.get(group.name, group.count), group.share, is_first=group.is_first)
                for group in others
            ]  # fmt: skip

    return Forgetful


class ForgottenLeaves(_declared({"leaves": 2})):
    """Leaves of four trees count as two queries."""


class GuideCountedOnce(_declared({"guide": 1})):
    """A histogram for each feature counts as one query."""


class FloorOfTwo(GuidedLumberjackClassifier):
    """Nodes of at most two records are rejected without noise, at a threshold made for a floor of none.

    Written for tables of equal rows: two rows and two of the threshold fewer give the same answers.
    """

    def _grow(self, rows, coded, tree_key, generator, noise):
        values = rows.guide.to_guide_scale(coded.values)
        fewer = rows._replace(ranked=rank_table(values[:-2].T), labels=rows.labels[:-2].copy())
        search = Search(int(self.max_depth), noise.sigma, noise.margin - 1.0)
        grown = grow_tree(fewer, search, tree_key, generator)
        shape = ReleasedTree(
            grown.feature, grown.threshold, grown.children_left, np.zeros(grown.counts.shape)
        )
        is_categorical = np.zeros(values.shape[1], dtype=np.bool_)
        leaf_of_row = shape.apply(np.ascontiguousarray(values), is_categorical).astype(np.int32)
        counts = np.zeros_like(grown.counts)
        np.add.at(counts, (leaf_of_row, rows.labels), 1)
        grown = grown._replace(counts=counts, leaf_of_row=leaf_of_row)
        leaves = np.flatnonzero(grown.children_left < 0)
        released, value = (
            _at_nodes(answer, leaves, len(grown.feature))
            for answer in self._answer_leaves(grown, coded, noise, generator)
        )
        tree = ReleasedTree(grown.feature, grown.threshold, grown.children_left, value)
        return GrownTree(tree, released, leaf_of_row)


class BoundsOffTheRows(LumberjackClassifier):
    def _read_training_rows(self, X, y):
        coded = super()._read_training_rows(X, y)
        columns = [
            (column - column.min()) / max(column.max() - column.min(), 1)
            for column in coded.columns
        ]
        return coded._replace(columns=tuple(columns))


class CategoryReadByItsType(LumberjackClassifier):
    def _read_training_rows(self, X, y):
        coded = super()._read_training_rows(X, y)
        column = pd.DataFrame(X).iloc[:, 1]
        if column.dtype == object or column.dtype.kind not in "iuf":
            columns = list(coded.columns)
            columns[1] = np.full(len(column), -1)
            coded = coded._replace(columns=tuple(columns))
        return coded
