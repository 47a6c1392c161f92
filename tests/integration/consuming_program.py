"""A consumer as a process of its own, so that it can be killed: writes down the id of each event.

python -m tests.integration.consuming_program URL CHECKPOINT IDS KAFKA_OR_NOTHING [DATA_DIR]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from placet import consume


def main(url: str, checkpoint: str, ids: Path, bootstrap_servers: str, data_dir: str) -> None:
    """Consume until killed."""
    of_kafka: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers,
        "kafka_settings": f"{data_dir}/kafka/clients/reader.json",
        "keys_dir": f"{data_dir}/keys",
    }
    with ids.open("a", encoding="utf-8") as file:
        for event in consume(url, checkpoint=checkpoint, **(of_kafka if bootstrap_servers else {})):
            file.write(f"{event.id}\n")
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5])
