"""The heads as they are stored outside the database: one append-only file of lines per tenant.

A head is written in this order: 1. the line without its end · 2. fsync · 3. the line's end. Readers take whole lines
only, so every head that was read is on the disk. A crash leaves at most one line without an end. When the file is
opened for writing, a complete head gets its end; anything else is cut off, because no reader can have seen it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from host.directories import sync_directory
from host.errors import OperatorError
from schemas.audit import Head, HeadMalformed, read_head

SUFFIX = ".jsonl"
BLOCK_BYTES = 64 * 1024


class HeadsUnusable(OperatorError):
    """The heads stored outside cannot be read or written; `str()` says what to do."""


@dataclass(frozen=True, slots=True)
class HeadFiles:
    """A directory of heads."""

    directory: Path

    def path(self, tenant: str) -> Path:
        """The file of a tenant."""
        return self.directory / f"{tenant}{SUFFIX}"

    def tenants(self) -> list[str]:
        """All tenants that have a file."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self.directory.glob(f"*{SUFFIX}"))

    def newest(self, tenant: str) -> Head | None:
        """The newest head of a tenant.

        Raises:
            HeadsUnusable: the file cannot be read, or its last line is not a head.
        """
        path = self.path(tenant)
        try:
            with path.open("rb") as file:
                end = _whole_lines_end(file.fileno())
                line = _line_before(file.fileno(), end)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HeadsUnusable(f"The audit heads in {path} cannot be read: {error}.") from error
        return _head(line, path) if line else None

    def after(self, tenant: str, number: int, limit: int) -> list[Head]:
        """The heads of a tenant with numbers above `number`, at most `limit`; errors as `newest`."""
        path = self.path(tenant)
        try:
            with path.open("rb") as file:
                end = _whole_lines_end(file.fileno())
                file.seek(_begin_after(file.fileno(), end, number, path))
                found: list[Head] = []
                while len(found) < limit and file.tell() < end:
                    head = _head(file.readline(), path)
                    if head.number > number:
                        found.append(head)
                return found
        except FileNotFoundError:
            return []
        except OSError as error:
            raise HeadsUnusable(f"The audit heads in {path} cannot be read: {error}.") from error

    def append(self, head: Head) -> None:
        """Add a head; when this returns, the head is on the disk.

        Raises:
            HeadsUnusable: it could not be written.
        """
        path = self.path(head.tenant)
        is_new = not path.exists()
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                _write_all(file.fileno(), head.line.encode())
                os.fsync(file.fileno())
                _write_all(file.fileno(), b"\n")
            if is_new:
                sync_directory(self.directory)
        except OSError as error:
            raise HeadsUnusable(f"The audit head cannot be kept in {path}: {error}.") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the directory as the only writer; repairs lines that a crash left without an end.

        Raises:
            HeadsUnusable: another projector holds it, or it cannot be created.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise HeadsUnusable(f"The audit heads cannot be kept in {self.directory}: {error}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for tenant in self.tenants():
                self._mend(tenant)
            yield
        except BlockingIOError as error:
            raise HeadsUnusable(
                f"Another projector writes its audit heads to {self.directory}: stop one of the two. An installation "
                "has one chain of heads, and a second chain looks forged to auditors."
            ) from error
        finally:
            os.close(descriptor)

    def _mend(self, tenant: str) -> None:
        path = self.path(tenant)
        with path.open("r+b") as file:
            begin = _whole_lines_end(file.fileno())
            file.seek(begin)
            rest = file.read()
            if not rest:
                return
            before = self.newest(tenant)
            if _follows(rest, before):
                file.write(b"\n")
            else:
                file.truncate(begin)
            file.flush()
            os.fsync(file.fileno())


def _follows(rest: bytes, before: Head | None) -> bool:
    try:
        head = read_head(rest.decode())
    except (HeadMalformed, UnicodeDecodeError):
        return False
    return head.previous == ("" if before is None else before.digest)


def _head(line: bytes, path: Path) -> Head:
    try:
        return read_head(line.decode().rstrip("\n"))
    except (HeadMalformed, UnicodeDecodeError) as error:
        raise HeadsUnusable(
            f"{path} has a line that is not an audit head: restore the file from a backup. Without it, heads "
            "begin again at number 1, and nothing proves any longer that the log was not cut before."
        ) from error


def _whole_lines_end(descriptor: int) -> int:
    """The offset at which the last whole line ends."""
    end = os.fstat(descriptor).st_size
    while end:
        begin = max(0, end - BLOCK_BYTES)
        at = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def _line_before(descriptor: int, end: int) -> bytes:
    """The whole line that ends at `end`; empty at the beginning of the file."""
    size = BLOCK_BYTES
    while True:
        begin = max(0, end - size)
        block = os.pread(descriptor, end - begin, begin)
        at = block[:-1].rfind(b"\n")
        if at >= 0 or begin == 0:
            return block[at + 1 :]
        size *= 2


def _begin_after(descriptor: int, end: int, number: int, path: Path) -> int:
    """The start of a line at or before the first head with a higher number, found by bisection."""
    low, high = 0, end
    while high - low > BLOCK_BYTES:
        middle = (low + high) // 2
        line = _line_before(descriptor, _next_end(descriptor, middle, end))
        at = _next_end(descriptor, middle, end) - len(line)
        if at <= low:
            break
        if _head(line, path).number <= number:
            low = at
        else:
            high = at
    return low


def _next_end(descriptor: int, at: int, end: int) -> int:
    while at < end:
        found = os.pread(descriptor, BLOCK_BYTES, at).find(b"\n")
        if found >= 0:
            return at + found + 1
        at += BLOCK_BYTES
    return end


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
