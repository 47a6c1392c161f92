"""The end of a processor's process."""

import logging
import os
import threading
from typing import NoReturn

from vitals import tracing

logger = logging.getLogger(__name__)
# Never released: the first thread to end the process says why and with which code, and another waits for that.
_ending = threading.Lock()


def end_process(code: int, cause: str = "") -> NoReturn:
    """End the process at once, with what it has still to tell.

    Not sys.exit: after a crash faust's threads continue, and would keep the process from ending.

    Args:
        code: the exit code.
        cause: what to say of it.
    """
    _ending.acquire()
    try:
        # By threads of its own and for a limited time, since anything else here may hang.
        tracing.end()
    finally:
        # The cause comes last: people who look for it read the end of the process's log.
        if cause:
            logger.critical(cause)
        logging.shutdown()
        os._exit(code)
