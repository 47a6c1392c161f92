"""Remembered decisions: one decision of people, used again for the same question."""
