"""The vault: sealed values, kept apart from the views, never rebuilt and never swapped (docs/secrets.md)."""
