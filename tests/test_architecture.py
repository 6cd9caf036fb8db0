"""Which way things flow: the arrows of the README, held by the imports of every file."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
BENCH = SOURCES / "lumberjack_bench"
OURS = {"lumberjack", "lumberjack_bench", "baselines"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def all_files() -> list[Path]:
    roots = (SOURCES, ROOT / "baselines", ROOT / "scripts")
    return [path for root in roots for path in files(root)]


def imports(path: Path, *, at_top: bool = False) -> Iterator[str]:
    """Yield the dotted names a file imports; only those that its own import triggers if asked."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if at_top and (id(node) in typing_only or id(node) in later):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def outside(path: Path, allowed: set[str]) -> set[str]:
    """Return what a file imports beyond the standard library and the allowed packages."""
    found = set()
    for name in imports(path):
        top = name.partition(".")[0]
        is_allowed = any(name == a or name.startswith(f"{a}.") for a in allowed)
        if top not in sys.stdlib_module_names and not is_allowed:
            found.add(name)
    return found


def report(problems: dict[Path, set[str]]) -> str:
    return "; ".join(f"{p.relative_to(ROOT)}: {sorted(names)}" for p, names in problems.items())


def check(paths: list[Path], allowed: set[str]) -> None:
    assert paths
    problems = {path: found for path in paths if (found := outside(path, allowed))}
    assert not problems, report(problems)


def test_the_library_knows_numeric_libraries_only_and_pandas_when_it_is_handed_a_frame() -> None:
    numeric = {"lumberjack", "numpy", "scipy", "numba", "sklearn", "joblib"}
    check(files(SOURCES / "lumberjack"), numeric | {"pandas"})
    for path in files(SOURCES / "lumberjack"):
        assert not [name for name in imports(path, at_top=True) if name.startswith("pandas")]


def test_privacy_mathematics_imports_numeric_libraries_and_nothing_else_of_ours() -> None:
    check(
        files(SOURCES / "lumberjack" / "accounting"),
        # Compilation is no idea of ours; it only says what numba lacks.
        {"lumberjack.accounting", "lumberjack.compiled", "numpy", "scipy"},
    )


def test_compilation_knows_numba_and_nothing_of_ours() -> None:
    check([SOURCES / "lumberjack" / "compiled.py"], {"numba"})
    others = [path for path in all_files() if path.name != "compiled.py"]
    assert not [path for path in others if any(n.startswith("numba") for n in imports(path))]


def test_baselines_know_the_schema_the_accounting_and_the_randomness_of_the_library() -> None:
    check(
        files(ROOT / "baselines"),
        {
            "baselines",
            "lumberjack.schema",
            "lumberjack.accounting",
            "lumberjack.compiled",
            "lumberjack.keyed_draws",
            "lumberjack.seeds",
            "numpy",
            "scipy",
            "sklearn",
            "joblib",
            "diffprivlib",
            "interpret",
        },
    )


# What each part of the harness may import of the others: configuration, runs, results, figures. A part is a
# module or a package; what is asked of one is asked of all its modules.
ARROWS = {
    "files": "",
    "configured": "files",
    "datasets": "configured files",
    "methods": "",
    "metrics": "",
    "ablation": "",
    "additive_ablation": "",
    "cards": "methods",
    "audit": "methods",
    "own_methods": "methods",
    "config": "datasets metrics own_methods runs.identity spelling",
    "spelling": "",
    "overrides": "config spelling",
    "arguments": "config overrides spelling",
    "runs.identity": "",
    "runs.holdout": "",
    "runs.isolation": "",
    "runs.provenance": "files",
    "runs.records": "metrics runs.identity",
    "runs.store": "files runs.records",
    "runs.compose": "config overrides own_methods",
    "runs.plan": "config methods overrides runs.compose runs.identity runs.store",
    "runs.execute": "config datasets methods metrics own_methods runs.holdout runs.identity runs.isolation runs.provenance "
    "runs.store",
    "runs.launch": "config runs.execute runs.identity runs.provenance",
    "runs.progress": "config metrics runs.execute runs.identity runs.plan runs.store",
    "runs.status": "config results runs.identity runs.plan runs.store",
    "results": "files metrics runs.identity runs.records runs.store",
    "tracking": "config files runs.execute runs.identity runs.store",
    "figures": "configured datasets files methods metrics results spelling",
    "runs.sweep": "config own_methods results tracking figures runs.execute runs.identity runs.isolation runs.launch "
    "runs.plan runs.progress runs.store",
    "command": "arguments cards config methods overrides spelling tracking runs.compose runs.isolation runs.launch "
    "runs.plan runs.status runs.store runs.sweep",
}


def part_of(path: Path) -> str:
    words = path.relative_to(BENCH).with_suffix("").parts
    return ".".join(words[: 2 if words[0] == "runs" else 1])


@pytest.mark.parametrize("part", ARROWS)
def test_a_part_of_the_harness_imports_only_what_it_may(part: str) -> None:
    for path in [path for path in files(BENCH) if part_of(path) == part]:
        for name in imports(path):
            allowed = (part, *ARROWS[part].split())
            own = name.removeprefix("lumberjack_bench.")
            if own != name and not any(f"{own}.".startswith(f"{one}.") for one in allowed):
                raise AssertionError(f"{path}: {name}")


ABLATIONS = {BENCH / "ablation.py", BENCH / "additive_ablation.py"}
"""Methods themselves, imported by the run that builds them."""


def test_every_part_of_the_harness_has_its_arrows() -> None:
    parts = {
        part_of(path) for path in files(BENCH) if path.stem != "__init__" or path.parent != BENCH
    }
    assert parts - {"runs.__init__"} <= {*ARROWS}


def test_the_guide_for_contributors_has_the_same_arrows() -> None:
    table = "\n".join(
        f"| {part} | {', '.join(allowed.split()) or 'nothing of ours'} |"
        for part, allowed in ARROWS.items()
    )
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    is_there = f"| part | may import |\n|---|---|\n{table}\n\n" in guide
    assert is_there, f"its table must be\n{table}"


def test_the_harness_meets_methods_only_through_their_contract() -> None:
    shows_algorithms = {BENCH / "figures", BENCH / "audit", *ABLATIONS}
    for path in files(BENCH):
        known = {"lumberjack.schema", "lumberjack.reading", "lumberjack.accounting"}
        for name in imports(path):
            top = name.partition(".")[0]
            assert top != "baselines", f"{path}: {name}"
            if top == "lumberjack" and not shows_algorithms & {path, *path.parents}:
                assert any(name.startswith(module) for module in known), f"{path}: {name}"


def test_mlflow_is_imported_in_one_file_and_only_when_it_is_used() -> None:
    users = [path for path in all_files() if any(n.startswith("mlflow") for n in imports(path))]
    assert users == [BENCH / "tracking.py"]
    at_top = imports(users[0], at_top=True)
    assert not [name for name in at_top if name.startswith("mlflow")]


def test_figures_know_a_table_and_neither_hydra_nor_runs_nor_tracking() -> None:
    for path in files(BENCH / "figures"):
        tops = {name.partition(".")[0] for name in imports(path)}
        assert not tops & {"hydra", "mlflow", "omegaconf"}, path


def walk() -> list[tuple[str, list[str]]]:
    """The steps of the README: a module, and the modules that it is said to use."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("followed with a finger")[2].partition("\n\n`src/lumberjack`")[0]
    steps = re.split(r"\n- ", section)[1:]
    names = [re.findall(r"`([a-z_.]+)`", step) for step in steps]
    return [(first, rest) for first, *rest in names]


def place_of(module: str) -> Path:
    if module == "run.py":
        return ROOT / module
    path = BENCH / module.replace(".", "/")
    return path if path.is_dir() else path.with_suffix(".py")


@pytest.mark.parametrize(("module", "used"), walk(), ids=lambda value: str(value))
def test_the_walk_of_the_readme_is_that_of_the_imports(module: str, used: list[str]) -> None:
    imported = set(imports(place_of(module)))
    for other in used:
        assert place_of(other).exists(), other
        name = f"lumberjack_bench.{other}"
        if other == "figures":
            continue  # which use the module, not the other way round
        parent, _, leaf = name.rpartition(".")
        assert any(
            i == name or i.startswith(f"{name}.") or i == f"{parent}.{leaf}" for i in imported
        )


def test_no_private_name_of_hydra_or_mlflow_is_used() -> None:
    for path in all_files():
        for name in imports(path):
            if name.startswith(
                ("hydra", "mlflow", "omegaconf", "submitit", "joblib", "distributed")
            ):
                private = [part for part in name.split(".") if re.match("_(?!_)", part)]
                assert not private, f"{path}: {name}"


def test_looking_at_results_and_planning_wait_for_no_heavy_import() -> None:
    # The commands that only look (--status, a finished sweep) import these before they answer.
    heavy = {"pandas", "sklearn", "numba", "matplotlib", "mlflow", "diffprivlib", "folktables"}
    eager = {*BENCH.glob("*.py"), *(BENCH / "runs").glob("*.py")} - ABLATIONS
    for path in eager:
        tops = {name.partition(".")[0] for name in imports(path, at_top=True)}
        assert not tops & heavy, f"{path}: {sorted(tops & heavy)}"


def test_every_imported_package_is_declared() -> None:
    # The names under which packages are imported, where they differ from those they are declared by.
    names = {"hydra": "hydra-core", "sklearn": "scikit-learn", "yaml": "pyyaml"}
    # Dask is one project in two packages of one version.
    names |= {
        "markdown_it": "markdown-it-py",
        "dp_accounting": "dp-accounting",
        "dask": "distributed",
        "interpret": "interpret-core",
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        re.split(r"[\[<>=!~; ]", text)[0]
        for texts in (project["dependencies"], *extras)
        for text in texts
    }
    tests = files(ROOT / "tests")
    ours = OURS | {path.stem for path in tests} | {"toy_methods"}
    for path in (*all_files(), *tests, ROOT / "run.py"):
        tops = {name.partition(".")[0] for name in imports(path)}
        packages = {names.get(top, top) for top in tops - ours - set(sys.stdlib_module_names)}
        assert packages <= declared, f"{path}: {sorted(packages - declared)}"


@pytest.mark.parametrize("path", all_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_named_for_its_idea(path: Path) -> None:
    assert not set(path.stem.split("_")) & VAGUE_NAMES
