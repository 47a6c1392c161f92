"""Make the cache of Kafka's loaded classes: start a broker once with nothing on it, and stop it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ops.errors import OpsError
from ops.kafka.broker import Broker, BrokerConfig
from ops.kafka.class_cache import cache_file
from ops.kafka.java import bundled_java, find_java

# The JVM writes the cache when it ends.
WRITTEN_WITHIN_S = 120.0


def train(target: Path) -> bool:
    """Make the cache in a file, instead of the one that is there.

    Returns:
        False if the JVM wrote none.

    Raises:
        OpsError: Kafka does not start.
    """
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".training-") as directory:
        made = Path(directory) / target.name
        config = BrokerConfig(
            Path(directory) / "broker", access=None, class_cache=(f"-XX:AOTCacheOutput={made}",)
        )
        broker = Broker(config)
        broker.start()
        broker.stop(WRITTEN_WITHIN_S)
        if not made.is_file():
            return False
        made.replace(target)
        return True


if __name__ == "__main__":
    try:
        if find_java() == bundled_java() and not train(cache_file()):
            sys.exit("The JVM wrote no cache of Kafka's classes: Kafka starts without it, in twice the time.")
    except OpsError as error:
        sys.exit(str(error))
