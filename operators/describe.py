"""describe: all tuples, and of the punctuations only those on given attributes, combined from several where needed.

Meaning:    D_A(R) = R
Example:    Describe(("hour",), watch=("min",))
              over (hour INT, min INT NOT NULL; min 0..59) gives (hour INT, min INT)
              in   (1, 10) <1, [0,30]> <2, 7> | (1, 40) <1, [31,59]> <3, *>
              out  (1, 10)                    | (1, 40) <{1,3}, *>
Step:       new
Pass:       –
Keep:       no tuples; (1) nothing, (2) the punctuations with wildcards outside A ∪ W.
Propagate:  (1) without attributes to watch: {p ∈ P | p has a wildcard at every attribute outside A};
            (2) with attributes W to watch, also punctuations on A alone: for the values of A that each of several
            punctuations with wildcards outside A ∪ W matches, if these together cover the domains of W exactly.
Safe when:  always; no tuples are kept. (2) forgets what it keeps about a value of A once that value is described.
Source:     Tucker et al. 2007, §7 (both definitions in §7.1, parameters in §7.2, Figures 7 and 8).
Differs:    Figure 8 groups what it combines by the patterns of the attributes that are not described, and joins ranges
            by their hulls: it would take `<1, [0,15]>` and `<2, [16,59]>`, or [0,15] and [45,59], for a whole hour.
            Here the values of the described attributes are the key, and a cover is exact. Any number of attributes can
            be watched, by any patterns, null included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Operator, Selection, Terms, among, own_terms
from xmlstream.operators.required_punctuations import Held, Way, on
from xmlstream.operators.state.completion import bound
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import StateSchema
from xmlstream.operators.taking_over import Names, TakenOver, TakesOver
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.notation import parse_pattern
from xmlstream.punct_ns.pattern import WILDCARD
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed, project
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Describe(Operator):
    """The input, with its punctuations that describe `attributes`, combined over the attributes in `watch`.

    `patterns`, one for each watched attribute or none at all, are the values to be covered; by default the domain. A
    punctuation that describes closes all values. So a pattern that leaves out part of the domain would make it wrong:
    the source declares the values of an attribute such as `min`, and checks its tuples; the pattern only repeats the
    declaration.
    """

    attributes: tuple[str, ...]
    watch: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    exact_inputs: ClassVar[bool] = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_TUPLES

    def __post_init__(self) -> None:
        both = [name.lower() for name in (*self.attributes, *self.watch)]
        for name in self.watch:
            if both.count(name.lower()) > 1:
                raise UsageError(f"describe watches {name} twice, or describes it as well")
        if self.patterns and len(self.patterns) != len(self.watch):
            raise UsageError(
                f"describe has {len(self.patterns)} patterns for {len(self.watch)} attributes to watch",
                hint="a pattern for each of them, or none at all",
            )

    def schema(self, *inputs: Schema) -> Schema:
        """The input's schema; UsageError if a watch pattern does not cover its attribute's domain."""
        for name in self.attributes:
            inputs[0].index(name)
        for name, text in zip(self.watch, self.patterns or ("*",) * len(self.watch), strict=True):
            _require_whole(text, inputs[0].attribute(name))
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes that describe the attributes, and those whose other terms tile watched attributes."""
        names = {name.lower(): name for name in self.attributes}
        known = {*names, *(name.lower() for name in self.watch)}
        of_them = [scheme for scheme in inputs[0] if known.issuperset(map(str.lower, scheme.attributes))]
        found = (scheme.renamed(names) for scheme in of_them)
        return tuple(dict.fromkeys(scheme for scheme in found if scheme is not None))

    def parameters(self, output: Schema) -> str:
        watching = f" watching {', '.join(self.watch)}" if self.watch else ""
        return ", ".join(self.attributes) + watching

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [needed | among((*self.attributes, *self.watch), inputs[0])]

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        return [own_terms(inputs[0])]

    def passes_through(self, *inputs: Schema) -> AbstractSet[str]:
        return frozenset(map(str.lower, inputs[0].names))

    def passes_duplicates(self, needed: AbstractSet[str], *inputs: Schema) -> bool:
        return True

    def selection(self, *inputs: Schema) -> Selection:
        return Selection()

    def taken_over(self, before: Describe, called: Names) -> TakenOver:
        """All, whatever it described."""
        return TakenOver()

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        return [((0, on(self.attributes, p, inputs[0])),)]

    def state_schema(self, *inputs: Schema) -> StateSchema:
        return StateSchema(sets=dict.fromkeys(["input", "sent"], inputs[0]) if self.watch else {})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        return inputs[0].tuples

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        schema = state.inputs[0]
        if not self.watch:
            return list(_on(self.attributes, inputs[0].punctuations, schema))
        held, sent = state.punctuations("input"), state.punctuations("sent")
        new = held.absorb(_on((*self.attributes, *self.watch), inputs[0].punctuations, schema))
        if not new:
            return []
        described = schema.only(self.attributes)
        built = project(held.set, self.attributes, described, new=new)
        out = sent.absorb(held.for_its_time(placed(built, self.attributes, schema)))
        held.absorb(out)  # in place of those that they are combined from
        for known in (held, sent):
            known.forget(out)
        bound(held, new, self.attributes)
        return out


def _on(names: Sequence[str], punctuations: Sequence[Punctuation], schema: Schema) -> Iterator[Punctuation]:
    """The punctuations with a wildcard at every other attribute."""
    places = frozenset(map(schema.index, names))
    return (p for p in punctuations if places.issuperset(p.restricted))


def _require_whole(text: str, watched: Attribute) -> None:
    if parse_pattern(text, watched.domain) == WILDCARD:
        return
    name, null = watched.name, watched.domain.nullable
    raise UsageError(
        f"the watch pattern {text} does not cover the domain of {name}{', which includes null' if null else ''}",
        hint=f"declare the domain with the source, NOT NULL and as in domains '{name} 0..59', or watch it whole: *",
    )
