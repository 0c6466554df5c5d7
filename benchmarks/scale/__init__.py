"""How cost grows with labels, rows and k, and what a plan says of it."""
