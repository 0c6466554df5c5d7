"""A model that goes on learning, against training again at every step."""
