"""Apache Kafka, embedded: pinned jars, one KRaft node on loopback, and the handle that starts and stops it."""
