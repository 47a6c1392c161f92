"""`placet bench --against REF`: the working tree and another commit of it, measured in turns on one machine."""
