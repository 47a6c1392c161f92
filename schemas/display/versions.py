"""The versions of a hold's view, and what each began to show; they are fixed, since the log has the texts' digests.

Version 2 begins with the run's request and reveals more hidden characters. Version 3 shows the spaces at the ends of
values without quotes, and distinguishes the value `(none)` from a missing one. Version 4 shows the marks that cover
other characters. Version 5 shows of a question what its answer can be and what it is about. Version 6 begins with
the message of a conversation that the agent was answering when it asked; only such holds have it. Versions 7 and 8
show what 5 and 6 did, and must be read whole also for what a question offers as its answer. Versions 9 and 10 also
tell what the policy's adaptive block made of a call: what new values require of trust, and why it did not release it.
Versions 11 and 12 no longer say of a new number that it is approved.
"""

VERSION = 12
WITHOUT_MESSAGE = 11
SHOWS_REQUEST_FROM = 2
HIDES_MORE_FROM = 2
SHOWS_ENDS_FROM = 3
SHOWS_COVERING_FROM = 4
SHOWS_ASKS_FROM = 5
SHOW_MESSAGE = frozenset({6, 8, 10, 12})
READS_OFFER_FROM = 7
TELLS_ADAPTIVE_FROM = 9
TELLS_NEW_AS_NEW_FROM = 11


def version_for(message: str) -> int:
    """The version in which a hold is shown that opens now.

    Args:
        message: the message that the agent was answering; empty if none, or if it is the run's request itself.
    """
    return VERSION if message else WITHOUT_MESSAGE
