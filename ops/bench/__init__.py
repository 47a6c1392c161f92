"""`placet bench`: what Placet costs, against the floor that Kafka itself sets in the same run."""
