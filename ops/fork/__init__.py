"""`placet fork`: a recorded execution again, with another decision at one point."""
