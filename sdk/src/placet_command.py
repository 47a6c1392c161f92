"""Where the `placet` command begins: a Ctrl-C while it is still read in, or at its very end, leaves without a word.

It stands beside the package and not in it: importing the package takes most of that time, and a library sets no
signal handlers.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

# As `placet.cli.app` has it, and shells for a command that an interrupt ended.
INTERRUPTED = 130


def main() -> None:
    """The console script."""
    # Where interrupts are ignored, as behind nohup, they stay so.
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, _leave)
    from placet.cli.app import run

    code = INTERRUPTED
    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        # A stack that was told to stop ignores further interrupts, and has its own exit code.
        if listens and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _leave)
    sys.exit(code)


def _leave(number: int, frame: FrameType | None) -> None:
    # Nothing has been begun yet, or everything is done and written.
    os._exit(INTERRUPTED)
