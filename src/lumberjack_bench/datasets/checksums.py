"""SHA-256 of files, remembered for large ones."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from lumberjack_bench.files import write_atomically

_REMEMBER_ABOVE_BYTES = 32 << 20
_RACY_SECONDS = 2.0


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def remembered_sha256(path: Path, memory: Path) -> str:
    """Return the SHA-256 of a file, read again only when the file has changed.

    Hashing a census file takes longer than loading its cached form, so the checksum of a large
    file is kept in the folder `memory`, beside size, time of change and inode.
    """
    state = path.stat()
    if state.st_size < _REMEMBER_ABOVE_BYTES:
        return sha256_of(path)
    place = str(path.resolve())
    identity = [place, state.st_size, state.st_mtime_ns, state.st_ino]
    note = memory / f"checksum-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["identity"] == identity:
            return str(known["sha256"])
    digest = sha256_of(path)
    # A file written a moment ago may change again within the clock's resolution.
    if time.time() - state.st_mtime > _RACY_SECONDS:
        with contextlib.suppress(OSError):
            write_atomically(note, json.dumps({"identity": identity, "sha256": digest}))
    return digest
