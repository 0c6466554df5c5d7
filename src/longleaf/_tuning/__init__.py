"""The search behind `longleaf.tune`.

`candidates` draws the settings that are worth trying, and `halving` trains and judges them, rung after rung.
"""
