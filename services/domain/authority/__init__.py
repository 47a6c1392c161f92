"""Who may decide, and whose voices count."""
