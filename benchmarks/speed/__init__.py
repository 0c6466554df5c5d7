"""longleaf and its peers on the same files: speed, memory and quality."""
