"""The CEL engine, without its command line.

The package imports its command line with itself, and that a terminal library: 0.7 s of each process's start.
"""

import sys
from types import ModuleType

_COMMAND_LINE = "cel.cli"


def _engine() -> ModuleType:
    if _COMMAND_LINE in sys.modules or "cel" in sys.modules:
        import cel

        return cel
    sys.modules[_COMMAND_LINE] = ModuleType(_COMMAND_LINE)
    try:
        import cel
    finally:
        # Whoever wants the command line itself gets it.
        del sys.modules[_COMMAND_LINE]
    return cel


cel = _engine()
