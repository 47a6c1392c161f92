"""An agent as a process of its own, so that it can be killed: pays once, and writes down that it did.

python -m tests.integration.agent URL EXECUTION EFFECTS [die-before-result] [tool=NAME]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from placet import OutcomeUnknown, Placet


def main(url: str, execution_id: str, effects: Path, die: bool, tool: str) -> int:
    """Run the agent to its end.

    Returns:
        0 when the call succeeded, 4 when nobody knows whether it ran.
    """
    placet = Placet(url, token=os.environ["AGENT_TOKEN"], agent="bot")
    with placet.execution(id=execution_id, request="Pay the March invoice") as run:

        @run.gated(tool=tool)
        def send_money(to: str, amount: float) -> str:
            with effects.open("a") as file:
                file.write(f"{to} {amount}\n")
                file.flush()
                os.fsync(file.fileno())
            if die:
                os.kill(os.getpid(), signal.SIGKILL)
            return "paid"

        try:
            send_money("GB29", 98.5)
        except OutcomeUnknown:
            return 4
    return 0


if __name__ == "__main__":
    named = [word.removeprefix("tool=") for word in sys.argv if word.startswith("tool=")] or ["send_money"]
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), "die-before-result" in sys.argv, named[0]))
