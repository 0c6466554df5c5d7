"""What a `Tagger` is made of: strings around an estimator of numbered labels.

`parts` makes the parts that were left out, `tags` turns tags into label numbers and back. `suggest` finds the
best tags of rows under filters and groups, `learning` lets a tagger go on learning with tags by name, and
`files` turns one into JSON and arrays and back.
"""
