"""The terminal."""

from placet.cli.app import main, run

__all__ = ["main", "run"]
