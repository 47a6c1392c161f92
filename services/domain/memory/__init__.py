"""What people decided once, remembered for the same question."""
