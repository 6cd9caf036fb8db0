from __future__ import annotations

import io
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that the loaders use by default."""
    folder = tmp_path / "data folder é"
    monkeypatch.setenv("LUMBERJACK_DATA", str(folder))
    monkeypatch.delenv("LUMBERJACK_STAND_IN_DIR", raising=False)
    return folder


class FileServer:
    """Serves bytes on loopback; can refuse, cut off, or keep silent."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.trouble: dict[str, str] = {}
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                trouble = outer.trouble.get(self.path)
                content = outer.files.get(self.path)
                if trouble == "silent":
                    time.sleep(0.6)
                elif trouble == "refused":
                    self.send_error(403, "Forbidden")
                elif content is None:
                    self.send_error(404, "Not Found")
                else:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    end = len(content) // (2 if trouble == "cut off" else 1)
                    self.wfile.write(content[:end])

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server() -> Iterator[FileServer]:
    running = FileServer()
    yield running
    running.close()


@pytest.fixture
def zipped() -> Callable[[dict[str, bytes]], bytes]:
    """Return the bytes of a zip archive of files."""

    def archive(files: dict[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as members:
            for name, content in files.items():
                members.writestr(name, content)
        return buffer.getvalue()

    return archive
