"""The CEL engine, without its command line.

Importing the package also imports its command line, and that a terminal library: 0.7 s of each process's start.
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
        # Code that needs the command line itself still gets it.
        del sys.modules[_COMMAND_LINE]
    # It logs a warning for each of our functions that raises, without the rule, which the verdict names. An agent
    # that sends arguments of another type would fill the decider's log.
    logging.getLogger("cel").setLevel(logging.ERROR)
    return cel


cel = _engine()
