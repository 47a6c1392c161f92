"""Consumers of the recorded events: from the gateway's stream, or from Kafka itself (docs/consume.md).

Where the events come from (`source`) yields them with the position after each; `consumer` filters them, and saves the
position once the program has asked for the next event.
"""
