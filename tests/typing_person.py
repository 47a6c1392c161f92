"""A person who types at the terminal of a process: a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

INTERRUPT, END = "\x03", "\x04"


@dataclass
class Typing:
    """A person at a terminal."""

    process: subprocess.Popen[bytes]
    screen: int
    told: str = ""

    def expect(self, text: str) -> str:
        """What was shown until a text, which is taken off."""
        while text not in self.told:
            assert select.select([self.screen], [], [], 30)[0], self.told
            try:
                self.told += os.read(self.screen, 65536).decode(errors="replace")
            except OSError as closed:
                raise AssertionError(f"it ended with {self.process.wait()} after {self.told!r}") from closed
        before, _, self.told = self.told.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.screen, f"{text}\n".encode())

    def press(self, key: str) -> None:
        os.write(self.screen, key.encode())

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it showed to its end."""
        with_rest = self.told
        try:
            while part := os.read(self.screen, 65536):
                with_rest += part.decode(errors="replace")
        except OSError:
            # The process has closed its side.
            pass
        return self.process.wait(timeout=30), with_rest


@contextmanager
def typing(
    command: Sequence[str], environment: Mapping[str, str] | None = None, early: str = ""
) -> Iterator[Typing]:
    """A process with a terminal of its own.

    Args:
        command: what to run.
        environment: its variables; by default this process's.
        early: what was typed before it began.
    """
    screen, side = pty.openpty()
    os.write(screen, early.encode())
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=side,
        stdout=side,
        stderr=side,
        # The terminal's interrupts are for the process that owns it.
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(side)
    try:
        yield Typing(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
