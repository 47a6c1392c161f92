"""Definitions that somebody wants to publish: read and compiled in a process of their own, within a bound of time."""
