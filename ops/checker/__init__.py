"""An independent checker of the reliability page's invariants, on any log: simulated, tested, or in production."""

from ops.checker.check import check, check_log, counting_facts, read_log
from ops.checker.views import check_view
from ops.checker.violations import INVARIANTS, Violation

__all__ = ["INVARIANTS", "Violation", "check", "check_log", "check_view", "counting_facts", "read_log"]
