"""Verifying an audit trail offline, by what is in a file and a key, believing no server.

Nothing of Placet's server is imported, and of other packages only `cryptography`, where it is there, for signatures
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
