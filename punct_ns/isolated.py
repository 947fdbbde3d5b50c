"""Isolated punctuations: constants of attributes whose values have no neighbours, which never coalesce with others.

A thousand closed strings stay a thousand constants, where a thousand integers become one range. So a set of
punctuations grows with closed strings for as long as it lives, unless who holds it forgets those that can do nothing
more (Li et al. 2006, §5.1, punctuation purgeability). What coalesces is never forgotten: a hole would split a range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from punct_ns.pattern import Constant, List, Pattern, Wildcard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from punct_ns.domain import Domain, Value
    from punct_ns.punctuation import Punctuation


def is_isolated(p: Punctuation) -> bool:
    """Whether it restricts by constants and lists alone, one of them with a value that has no neighbour.

    Null is no such value: it is one of its attribute, and completes the domain.

    >>> from punct_ns.punctuation import Punctuation
    >>> from punct_ns.schema import Schema
    >>> session = Schema.parse("sid STRING, hour INT")
    >>> [is_isolated(Punctuation.parse(text, session)) for text in ("<u7, *>", "<u7, 3>", "<*, 3>", "<u7, (,3]>")]
    [True, True, False, False]
    """
    found = False
    for i, pattern in enumerate(p.patterns):
        if type(pattern) is Wildcard:
            continue
        if type(pattern) is not Constant and type(pattern) is not List:
            return False
        found = found or _is_dense(p.schema[i].domain, listed(pattern))
    return found


def isolated(ps: Iterable[Punctuation]) -> list[Punctuation]:
    """Those of the punctuations that are isolated, in order.

    >>> from punct_ns.punctuation import Punctuation
    >>> from punct_ns.schema import Schema
    >>> session = Schema.parse("sid STRING")
    >>> [str(p) for p in isolated(Punctuation.parse(text, session) for text in ("<u7>", "<(,u3]>"))]
    ['<u7>']
    """
    return [p for p in ps if is_isolated(p)]


def listed(pattern: Pattern) -> tuple[Value | None, ...]:
    """The values of a constant or a list; none of any other pattern.

    >>> listed(Constant("u7")), listed(List(("u7", None)))
    (('u7',), ('u7', None))
    """
    match pattern:
        case Constant(value=value):
            return (value,)
        case List(values=values):
            return values
    return ()


def _is_dense(domain: Domain, values: tuple[Value | None, ...]) -> bool:
    return not domain.discrete and any(value is not None for value in values)
