"""A decider process that a command kills: `python -m tests.runtime.deadly SETTINGS`, of JSON."""

import json
import os
import signal
import sys
from typing import Any

from services.domain.execution import execution
from services.runtime.main import run

POISON = "poison"


def main(settings: dict[str, str]) -> None:
    decide = execution.decide

    def deadly(state: Any, command: Any, ctx: Any) -> Any:
        if getattr(command, "reason", "") == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        return decide(state, command, ctx)

    execution.decide = deadly
    run(settings)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
