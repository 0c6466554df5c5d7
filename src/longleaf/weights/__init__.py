"""The weights of trees, as flat arrays in chunks of siblings.

`layout` says what the arrays are; `join` puts the weights of consecutive ranges of nodes together; `chunks`
takes single chunks apart and packs them again; `files` turns a model's trees and weights into arrays by name
and back.
"""
