"""Formats: what runs and gold look like outside.

One door in for paths (`loading.load`), one for anything a caller holds (`intake`), one
out (`writing.write`). Nothing is imported here, so that a command pays only for the
formats it meets. To add one: a `Format` in a module of this room, and its name in
`shipped.SHIPPED`.
"""
