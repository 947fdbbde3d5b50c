"""State that an operator takes over, once a query was changed, from the operator of the query before.

The two are compared above inputs with the same tuples. The state is taken over if it is the one that the operator would
have now, had it read the inputs from their beginning. An operator says so of itself, in its logical properties; what
it says nothing of begins anew. (`xmlstream.runtime.change.plan_comparison` finds the pairs, from the sources up.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.dataclasses import dataclass, fields, is_dataclass
from xmlstream.operators.expressions.dialect import attributes_in, in_terms, parsed, render
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

Names: TypeAlias = Mapping[str, str]
"""Attributes of the new plan, in lower case, with their names in the old one."""


class Differs(Exception):
    """Two operators are not the same for what they keep; the text has the reason."""


class TakesOver(Enum):
    """What an operator takes over of one with the same parameters: nothing, or its state, above which inputs."""

    NOTHING = "it begins anew"
    ABOVE_SAME_ATTRIBUTES = "above inputs with the same attributes in the same order"
    ABOVE_SAME_TUPLES = "above inputs with the same tuples, which may name attributes otherwise, or lack some"


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The state that an operator takes over.

    Attributes:
        output: The old names of the output's attributes; None if those of an input have its old names, and others are
            called as before.
        columns: The old names of kept columns that are no attributes of an input; None if they are called as before.
        form: Brings kept rows into the form in which the operator keeps them now; None if they have it.
    """

    output: Names | None = None
    columns: Names | None = None
    form: Callable[[Frame], Frame] | None = None


def is_alike(now: Any, before: Any, called: Names, *, without: Collection[str] = ()) -> bool:
    """Whether a parameter of an operator, or the whole of it, means the same as before; domains may be others.

    Args:
        now: The parameter.
        before: The one before.
        called: The old names of the inputs' attributes.
        without: Names of fields that do not count.
    """
    # Words such as the kind of a join are renamed, too, if an attribute is called so: in both, then.
    earlier = {name.lower(): name for name in called.values()}
    return bool(_shape(now, called, without) == _shape(before, earlier, without))


def in_old_terms(called: Names, text: str) -> Names:
    """The terms of the attributes in an expression: their old names, as far as they had any."""
    return {name.lower(): quoted(called.get(name.lower(), name)) for name in attributes_in(text)}


def _shape(value: Any, called: Names, without: Collection[str] = ()) -> Any:
    """A parameter of an operator in a form to be compared."""
    match value:
        case str() if "`" in value and (tree := parsed(value)) is not None:
            return render(in_terms(tree, in_old_terms(called, value)))
        case str():
            return called.get(value.lower(), value)
        case Domain(type=type_):
            return type_
        case Schema():
            return [_shape(attribute, called) for attribute in value]
        case tuple() | list():
            return [_shape(each, called) for each in value]
        case _ if is_dataclass(value):
            compared = (f.name for f in fields(value) if f.compare and f.name not in without)
            return type(value).__name__, {name: _shape(getattr(value, name), called) for name in compared}
    return str(value)
