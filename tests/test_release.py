"""The papers of a release: version, changelog, licences and what the guides point at agree with the project."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import yaml

PROJECT = Path(__file__).parents[1]
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def text_of(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def headings() -> list[str]:
    return re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.MULTILINE)


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == version
    released = [heading for heading in headings() if heading != "[Unreleased]"]
    assert released[0].startswith(f"[{version}] - ")


def test_the_changelog_has_the_usual_form() -> None:
    text = text_of("CHANGELOG.md")
    assert text.startswith("# Changelog\n")
    found = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", h) for h in headings()]
    found = found[1:] if headings()[0] == "[Unreleased]" else found
    assert all(found), headings()
    for newer, older in pairwise(found):
        assert tuple(map(int, newer.groups()[:3])) > tuple(map(int, older.groups()[:3]))
        assert newer[4] >= older[4]
    for part in text.split("\n## ")[1:]:
        own = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert set(own) <= set(SECTIONS)
        assert len(own) == len(set(own))
        # Each heading has entries, and each entry a heading.
        assert all("\n- " in section for section in part.split("\n### ")[1:])
        assert "\n- " not in part.split("\n### ")[0]


def licences_script():
    spec = importlib.util.spec_from_file_location(
        "list_licences", PROJECT / "scripts/list_licences.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_licences_of_all_that_is_needed_are_listed_as_the_packages_state_them() -> None:
    script = licences_script()
    text = text_of("THIRD_PARTY.md")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    rows = [dict(re.findall(r"^\| (\S+) \| (.*) \|$", part, re.MULTILINE)) for part in parts]
    listed = [
        {n: licence for n, licence in own.items() if n not in ("package", "---")} for own in rows
    ]
    again = "python scripts/list_licences.py > THIRD_PARTY.md"
    # Which packages the benchmark needs depends on the machine and the Python a little.
    assert listed[0] == script.licences(), again
    extras = [extra for _, extras in script.PARTS.values() for extra in extras]
    missing = script.licences(extras).items() - {**listed[0], **listed[1]}.items()
    assert not missing, f"{sorted(missing)}: {again}"


def test_a_licence_is_an_expression_a_name_a_classifier_or_a_file() -> None:
    script = licences_script()

    class Package:
        def __init__(self, **fields):
            self.metadata = self
            self.fields = {name.replace("_", "-"): values for name, values in fields.items()}

        def get(self, name):
            return next(iter(self.fields.get(name, ())), None)

        def get_all(self, name):
            return self.fields.get(name)

    named = ["License :: OSI Approved", "License :: OSI Approved :: MIT License", "Topic :: X"]
    long = ["Permission is hereby granted\nto any person"]
    assert script.licence_of(Package(License_Expression=["MIT"], License=["other"])) == "MIT"
    assert script.licence_of(Package(License=["BSD"], Classifier=named)) == "BSD"
    assert script.licence_of(Package(License=long, Classifier=named)) == "MIT License"
    assert (
        script.licence_of(Package(License=["UNKNOWN"], License_File=["COPYING"]))
        == "see its COPYING"
    )
    assert script.licence_of(Package()) == "not stated"


def test_the_guides_point_at_what_is_there() -> None:
    for guide in ("CONTRIBUTING.md", "SECURITY.md"):
        for name in re.findall(r"`((?:[\w.]+/)*[\w.]*[\w/])`", text_of(guide)):
            looks_like_path = "/" in name or name.endswith((".md", ".toml", ".cff", ".py"))
            assert not looks_like_path or (PROJECT / name).exists() or name == "results/", name
