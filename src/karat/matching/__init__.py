"""Matchers: which retrieved document satisfies which gold item.

Nothing is imported here, so that a command pays only for the matchers it uses. To add
one: a frozen dataclass in a module of this room, and its name in `matcher.SHIPPED`.
"""
