"""Sizes that every door and the writer agree on, in bytes unless said otherwise."""

ARGUMENTS_MAX_BYTES = 256 * 1024
TEXT_MAX_CHARS = 16 * 1024
JSON_MAX_DEPTH = 64
ID_MAX_CHARS = 128

# One command's events must fit one Kafka batch together; over it the command is refused as too_large.
DECISION_MAX_BYTES = 1_000_000
# A round of decisions is cut here, and only between two commands.
ROUND_MAX_BYTES = 512 * 1024
