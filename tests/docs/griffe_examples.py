"""For the site: griffe knows sections called `Examples`, docstrings have `Example`."""

import re
from typing import Any

from griffe import Extension


class Examples(Extension):  # type: ignore[misc]
    """Reads both alike."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            text = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
            obj.docstring.value = text
