"""The vault: sealed values, apart from the views, never rebuilt and never swapped (docs/secrets.md)."""
