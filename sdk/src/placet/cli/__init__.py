"""The terminal."""

import sys

try:
    from placet.cli.app import main, run
except KeyboardInterrupt:
    # Ctrl-C while the command is still read in: as quiet as later.
    sys.exit(130)

__all__ = ["main", "run"]
