"""Theory where the truth is known."""
