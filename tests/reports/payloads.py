"""Texts that try to be markup, scripts, formulas or commands of a terminal."""

from itertools import islice, product

# Whoever succeeds leaves a mark that a test can see.
_DO = "document.documentElement.dataset.hit=1"

_MARKUP = (
    f"<script>{_DO}</script>",
    f"<ScRiPt >{_DO}</sCrIpT>",
    f"<img src=x onerror={_DO}>",
    f'<img src="x" onerror="{_DO}">',
    f"<svg onload={_DO}>",
    f"<svg><script>{_DO}</script></svg>",
    f"<svg><animate onbegin={_DO} attributeName=x dur=1s>",
    f"<body onload={_DO}>",
    f"<iframe srcdoc='<script>parent.{_DO}</script>'></iframe>",
    f'<iframe src="javascript:parent.{_DO}"></iframe>',
    f"<details open ontoggle={_DO}>x</details>",
    f"<input autofocus onfocus={_DO}>",
    f"<video><source onerror={_DO}></video>",
    f"<math><mtext><img src=x onerror={_DO}></mtext></math>",
    f"<a href='javascript:{_DO}'>x</a>",
    f"<object data='javascript:{_DO}'></object>",
    f"<embed src='javascript:{_DO}'>",
    f"<form action='javascript:{_DO}'><button>x</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:{_DO}'>",
    "<link rel=stylesheet href=http://192.0.2.1/x.css>",
    "<img src=http://192.0.2.1/leak.png>",
    "<base href=http://192.0.2.1/>",
    "<style>*{background:url(http://192.0.2.1/x)}</style>",
    f"<template><script>{_DO}</script></template>",
    f"<noscript><img src=x onerror={_DO}></noscript>",
)
_BREAKS = (
    "{}",
    '">{}',
    "'>{}",
    "</script>{}",
    "</title>{}",
    "</textarea>{}",
    "--><!-- {}",
    "<!--{}",
    "]]>{}",
    "</style>{}",
    "</svg>{}",
    "\\u003c{}",
    "&lt;/td&gt;{}",
    "\u202e{}\u202c",
    "\u2028{}\u2029",
    "\x00{}",
    "\x1b[2J\x1b]8;;http://192.0.2.1\x07{}",
    "\ufeff{}\u200b",
    "`{}`",
)
_OTHER = (
    '=HYPERLINK("http://192.0.2.1")',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\uff1d1+1",
    "[x](javascript:alert(1))",
    "![x](http://192.0.2.1/x.png)",
    "| a | b |",
    "'; alert(1); //",
    '"; alert(1); //',
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "__proto__",
    "constructor",
    "%3Cscript%3E",
    "\x9b31mred",
    "a\x08\x08b",
    "\U0001f600 \u05e9\u05dc\u05d5\u05dd \u0627\u0628",
)


def payloads(count: int = 500) -> list[str]:
    """So many different texts that should do nothing."""
    made = (frame.format(mark) for frame, mark in product(_BREAKS, _MARKUP))
    return [*_OTHER, *islice(made, count - len(_OTHER) - 1), "".join(_MARKUP)]
