from __future__ import annotations

import threading
import time
from collections.abc import Iterator
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
        self.cut_off: set[str] = set()
        self.silent: set[str] = set()
        self.refused: set[str] = set()
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                if self.path in outer.silent:
                    time.sleep(0.6)
                    return
                if self.path in outer.refused:
                    self.send_error(403, "Forbidden")
                    return
                if self.path not in outer.files:
                    self.send_error(404, "Not Found")
                    return
                content = outer.files[self.path]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.path in outer.cut_off:
                    content = content[: len(content) // 2]
                self.wfile.write(content)

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
