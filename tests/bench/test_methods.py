from __future__ import annotations

import re
from typing import Any

import pytest

from baselines.majority import MajorityClassifier
from lumberjack.schema import FeatureSchema
from lumberjack_bench.methods import MethodError, build_method, check_target, reason_to_skip


def config(**changes: Any) -> dict[str, Any]:
    plain = {
        "name": "majority",
        "target": "baselines.majority.MajorityClassifier",
        "is_private": False,
        "params": {},
    }
    return plain | changes


def test_a_method_is_built_with_the_settings_of_the_run(mixed_schema: FeatureSchema) -> None:
    method = build_method(config(), schema=mixed_schema, epsilon=2.0, delta=1e-5, n_jobs=2)
    assert isinstance(method, MajorityClassifier)
    assert (method.epsilon, method.delta, method.n_jobs) == (2.0, 1e-5, 2)
    assert method.schema is mixed_schema


@pytest.mark.parametrize(
    "target", ["os.system", "lumberjackish.Forest", "baselines", "builtins.eval"]
)
def test_classes_from_elsewhere_are_refused(target: str) -> None:
    with pytest.raises(MethodError, match=re.escape(f"{target!r} is not in an allowed package")):
        check_target(target)


def test_a_package_of_ones_own_can_be_allowed_but_not_its_namesakes() -> None:
    check_target("mine.forest.Forest", ["mine"])
    check_target("mine.forest.Forest", ["mine."])
    with pytest.raises(MethodError):
        check_target("minesweeper.Forest", ["mine"])
    with pytest.raises(MethodError):
        check_target("os.system", [""])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "baselines.nosuch.Forest"}, "cannot be imported"),
        ({"target": "baselines.majority.nosuch"}, "names no class"),
        ({"target": "baselines.majority.np"}, "names no class"),
        ({"params": {"depth": 3}}, "no parameter 'depth'; it has none"),
        ({"params": {"epsilon": 3}}, "params may not hold epsilon"),
        ({"is_private": True}, "says is_private: true, but MajorityClassifier is otherwise"),
        ({"is_tuned": True}, "says is_tuned: true, but MajorityClassifier is otherwise"),
        (
            {"target": "lumberjack.LumberjackClassifier", "is_private": True, "mode": "tight"},
            "majority has no modes, got method.mode=tight. What it does follows from its parameters: "
            "n_estimators, max_depth, structure_share, leaves, accounting",
        ),
    ],
)
def test_a_configuration_that_fits_no_class_is_refused(
    changes: dict[str, Any], message: str, mixed_schema: FeatureSchema
) -> None:
    with pytest.raises(MethodError, match=message):
        build_method(config(**changes), schema=mixed_schema, epsilon=1.0, delta=0.0)


def test_a_method_that_cannot_be_built_says_so_beforehand(mixed_schema: FeatureSchema) -> None:
    too_deep = config(
        target="baselines.diffprivlib.DiffPrivLibClassifier",
        is_private=True,
        params={"max_depth": 30},
    )
    shared: dict[str, Any] = {"schema": mixed_schema, "epsilon": 1.0, "delta": 0.0}
    assert reason_to_skip(build_method(config(), **shared), 100) is None
    assert "GB" in str(reason_to_skip(build_method(too_deep, **shared), 100))
