"""States and statuses in which something is over, or still goes on."""

# Of executions.
CLOSED = frozenset({"completed", "failed", "cancelled"})
LIVE = frozenset({"running", "paused", "waiting_clarification", "waiting_approval", "resumed"})
# Of calls.
TERMINAL = frozenset({"denied", "cancelled", "expired", "revoked", "succeeded", "failed"})
