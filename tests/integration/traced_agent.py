"""An agent as a process of its own that pays once.

python -m tests.integration.traced_agent URL EXECUTION EFFECTS
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from placet import Placet


def main(url: str, execution_id: str, effects: Path) -> None:
    """Run the agent to its end."""
    placet = Placet(url, token=os.environ["AGENT_TOKEN"], agent="bot")
    with placet.execution(id=execution_id) as run:

        @run.gated
        def send_money(to: str, amount: float) -> str:
            effects.write_text(f"{to} {amount}\n")
            return "paid"

        send_money(os.environ["PAYEE"], 98.5)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
