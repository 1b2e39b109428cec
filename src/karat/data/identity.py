"""What counts as the same id: `1` and `"1"` are one."""

from karat.errors import DataError

__all__ = ["as_id"]


def as_id(value: object, what: str = "document id", query: object = None) -> str:
    """The id as text. Whole numbers are written out; anything else is refused.

    Example:
        >>> as_id(7)
        '7'
    """
    if isinstance(value, str):
        return value
    # NumPy's integers are not ints, but index like them.
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return str(value.__index__())
    raise DataError(
        f"{what} must be a string or an integer, "
        f"got {type(value).__name__} {value!r:.60}",
        query=query,
    )
