"""How often this process looks for garbage."""

import gc

# By default all young objects are scanned after every 700 new ones.
NEW_OBJECTS = 50_000


def collect_seldom() -> None:
    """Look for garbage after every 50,000 new objects: for a process in which most that it makes lives for long."""
    gc.set_threshold(NEW_OBJECTS)
