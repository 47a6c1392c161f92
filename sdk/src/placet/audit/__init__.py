"""Verifies an audit trail offline, from files and a key, without trusting a server.

It imports nothing of Placet's server, and of other packages only `cryptography`, if installed, for signatures
(`pip install placet[audit]`). docs/audit.md says what is proved and what is not.
"""

from placet.audit.bundle import Unreadable, read_heads, read_keys
from placet.audit.findings import Finding, Kind, Report
from placet.audit.verify import verify_bundle, verify_path, verify_proof

__all__ = [
    "Finding",
    "Kind",
    "Report",
    "Unreadable",
    "read_heads",
    "read_keys",
    "verify_bundle",
    "verify_path",
    "verify_proof",
]
