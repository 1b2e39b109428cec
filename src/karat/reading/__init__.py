"""Reading and writing: what runs, gold, samples and corpora look like outside.

`readers` is the way in, for paths and for Python objects, and `write` the way out.
Nothing is imported here, so that a command pays only for the formats it meets. To add
one: a `Format` in a module of its own, and its row in `format.SHIPPED`.
"""
