"""The documentation is built without a warning, and a real browser shows it as it is meant."""

from __future__ import annotations

import functools
import html
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib import colors, image

from lumberjack_bench.figures.style import VERMILION

pytest.importorskip("mkdocs", reason="needs the extra docs")

ROOT = Path(__file__).resolve().parents[1]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_SECONDS = 240


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "WARNING" not in ended.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the built folder is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def browse(folder: Path, *flags: str) -> str:
    if BROWSER is None:
        pytest.skip("needs Debian's package chromium, which .ci/run installs")
    own = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    quiet = ["--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}"]
    ended = subprocess.run(
        [BROWSER, *own, *quiet, "--virtual-time-budget=5000", *flags],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return ended.stdout


def test_every_page_says_what_it_is_about_and_no_markup_is_left_over(site: Path) -> None:
    sources = [path for path in (ROOT / "docs").rglob("*.md")]
    assert len(sources) >= 15
    for source in sources:
        place = source.relative_to(ROOT / "docs").with_suffix("")
        page = site / ("" if place.name == "index" else place) / "index.html"
        article = re.findall(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)[
            0
        ]
        assert "<h1" in article, page
        text = html.unescape(re.sub(r"<pre.*?</pre>|<[^>]*>", " ", article, flags=re.DOTALL))
        assert not re.search(r":(class|func|mod|meth):|```|\]\(", text), page


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag in re.findall(r"<(?:script|link|img)[^>]*>", text):
            if 'rel="canonical"' not in tag:
                assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), f"{page}: {tag}"


def test_a_browser_shows_the_pictures_of_the_landing_page(address: str, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browse(tmp_path, "--window-size=1300,1800", f"--screenshot={picture}", f"{address}/")
    pixels = image.imread(picture)[:, :, :3]
    assert pixels.shape == (1800, 1300, 3)
    # Curves of the two pictures; the theme has nothing of the colour.
    is_curve = abs(pixels - colors.to_rgb(VERMILION)).max(axis=2) < 0.02
    for top, bottom in ((400, 1040), (1100, 1600)):
        assert is_curve[top:bottom].sum() > 50
    shown = browse(tmp_path, "--dump-dom", f"{address}/")
    pictures = re.findall(r'<img[^>]*src="([^"]+)"', shown)
    assert pictures == ["pictures/rivals.png", "pictures/suite.png"]


def test_the_page_s_scripts_run_and_formulas_are_formulas(address: str, tmp_path: Path) -> None:
    shown = browse(tmp_path, "--dump-dom", f"{address}/mathematics/")
    assert shown.count("<math") >= 8
    # A button that the theme's script adds to each code block.
    assert "md-code__button" in shown
