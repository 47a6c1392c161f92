"""Trust: facts counted into parts, a reader's view of the parts, and what they are worth to a verdict."""
