"""Final states and statuses, and those of work that continues."""

# Of executions.
CLOSED = frozenset({"completed", "failed", "cancelled"})
LIVE = frozenset({"running", "paused", "waiting_clarification", "waiting_approval", "resumed"})
# Of calls.
TERMINAL = frozenset({"denied", "cancelled", "expired", "revoked", "succeeded", "failed"})
