"""Errors that prevent the verification of a token, whether it is valid or not."""


class IssuerUnavailable(RuntimeError):
    """The identity provider's keys cannot be fetched now, so its tokens cannot be verified; a retry may succeed."""
