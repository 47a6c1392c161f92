"""Ask a person for environment variables: only this process receives them, and no log or view contains them.

python env_var.py    with PLACET_URL and PLACET_TOKEN (of an agent)
"""

import os
import sys

from placet import BlockingHITLHandler, NotReleased, Placet

with Placet() as placet, placet.execution(request="Upload the report") as run:
    try:
        variables = BlockingHITLHandler(run).request_env_var(
            [
                {"name": "STORE_KEY", "description": "the key of the object store"},
                {"name": "STORE_REGION", "required": False, "secret": False, "pattern": "^eu-"},
            ],
            timeout_seconds=3600,
        )
    except NotReleased as refused:
        sys.exit(f"not uploaded: {refused}")
    # For the libraries of this process that read them from there; programs that it starts inherit them.
    os.environ.update(variables)
    print(f"uploading with {', '.join(sorted(variables))}")
