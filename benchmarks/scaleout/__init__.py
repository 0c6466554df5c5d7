"""Training on many machines: real runs on few, replayed on many."""
