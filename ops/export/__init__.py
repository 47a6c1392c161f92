"""`placet export`: the facts as files for analysts."""
