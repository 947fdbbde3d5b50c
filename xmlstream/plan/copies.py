"""Copies of a source's attributes in a result, where nothing between the two keeps tuples back."""

from __future__ import annotations

from collections.abc import Mapping

from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node, Results, Scan, Static


def copies(result: Node, names: Mapping[Node, str]) -> dict[tuple[str, str], str]:
    """What the attributes of sources, by the sources' names and theirs, are called in a result.

    Only such as reach it by operators that hand on each tuple in the slice in which it comes, and each punctuation with
    it: what the source has closed of them is closed in the result before anything that comes later.
    """
    match result.operator:
        case Scan():
            return {(names[result], name): name for name in result.schema.names}
        case Static() | Results():
            return {}
        case operator:
            if len(result.inputs) != 1:
                return {}
            (below,) = result.inputs
            declared = operator.state_schema(below.schema)
            if declared.logs or declared.notes:
                return {}
            known = copies(below, names)
            (terms,) = operator.predicate_terms(below.schema)
            called = {terms[name.lower()]: name for name in result.schema.names if name.lower() in terms}
            return {which: called[quoted(name)] for which, name in known.items() if quoted(name) in called}
