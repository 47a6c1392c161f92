"""Ask a person for leave. A timeout grants nothing; a person can say that the answer is for further times, too.

python permission.py DIRECTORY…    with PLACET_URL and PLACET_TOKEN (of an agent)

What must be approved with its exact arguments is a gated call instead (docs/sdk.md).
"""

import sys

from placet import BlockingHITLHandler, Placet

with Placet() as placet, placet.execution(request="Clean up") as run:
    handler = BlockingHITLHandler(run)
    granted_for_all = False
    for directory in sys.argv[1:]:
        if not granted_for_all:
            permission = handler.request_permission(
                tool="shell", action=f"rm -rf {directory}", risk="high", remember=True, timeout_seconds=3600
            )
            if not permission:
                print(f"kept {directory}")
                continue
            granted_for_all = permission.remember
        print(f"would remove {directory}")
