"""Ask a person what the user means, and go on with the text that they write.

python clarification.py    with PLACET_URL and PLACET_TOKEN (of an agent)
"""

from placet import BlockingHITLHandler, Placet, Unanswered

with Placet() as placet, placet.execution(request="Tidy up report.pdf") as run:
    handler = BlockingHITLHandler(run)
    try:
        wanted = handler.request_clarification(
            "Do you want to delete report.pdf, or move it?",
            options=["delete", "move to the archive"],  # suggestions: any other text is an answer, too
            timeout_seconds=3600,
        )
    except Unanswered as nothing:
        print(f"left as it is: {nothing}")
    else:
        print(f"the user wants: {wanted}")
