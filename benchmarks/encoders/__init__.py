"""What sentence encoders cost, and what they are worth."""
