"""What keeps a token from being judged at all, good or bad."""


class IssuerUnavailable(RuntimeError):
    """The identity provider's keys cannot be fetched now, so its tokens cannot be verified; a retry may succeed."""
