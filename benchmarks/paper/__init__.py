"""The study of the PS-PLT paper."""
