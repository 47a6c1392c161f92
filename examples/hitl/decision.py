"""Ask a person to choose between options; if nobody does in time, the safe one is taken.

python decision.py    with PLACET_URL and PLACET_TOKEN (of an agent)
"""

import asyncio

from placet import AsyncPlacet, HITLHandler


async def main() -> None:
    """Ask, and print the id of the option."""
    async with AsyncPlacet() as placet, placet.execution(request="Deploy release 7") as run:
        handler = HITLHandler(run, remind_after_seconds=600)
        where = await handler.request_decision(
            question="Where is release 7 deployed?",
            options=[
                {"id": "staging", "label": "Staging", "recommended": True},
                {"id": "production", "label": "Production", "description": "12,000 users"},
            ],
            decision_type="branch",
            default_option="staging",
            timeout_seconds=3600,
        )
        print(f"deploying to {where}")
        run.result = {"deployed_to": where}


asyncio.run(main())
