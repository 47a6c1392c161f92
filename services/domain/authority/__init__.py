"""Who can decide, and whose votes count."""
