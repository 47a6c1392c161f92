"""The CEL engine, without its command line.

The package imports its command line with itself, and that a terminal library: 0.7 s of each process's start.
"""

import logging
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
    # It warns of each function of ours that raises, without a word of which rule: the verdict says that. An agent
    # whose arguments are of another kind would fill the decider's log.
    logging.getLogger("cel").setLevel(logging.ERROR)
    return cel


cel = _engine()
