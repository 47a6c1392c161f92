"""Apache Kafka, embedded: pinned jars, one KRaft node on loopback, and the handle on it."""
