"""Each form of an expression that is proven to be equal in Spark and in DuckDB: operators, literals, calls, OVER.

This is the one table of what an expression is, with those of functions, casts, arithmetic and aggregates beside it. A
form gives its part: the type, whether Spark's analyser takes it to be null, whether Spark raises an error for some
value, and the text in DuckDB. The optimizer and the verdicts ask for the former, the engine in process for the latter.
Whatever is not here is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from sqlglot import exp

from xmlstream.operators.expressions.dialect import Holding, any_in, call_name, render, type_text
from xmlstream.operators.expressions.operations.aggregate_functions import (
    AGGREGATES,
    WINDOWS,
    Rows,
    aggregate,
    collected,
    order_key,
    over,
)
from xmlstream.operators.expressions.operations.arithmetic import (
    Reordering,
    arithmetic,
    beside_decimals,
    in_any_order,
    signed,
)
from xmlstream.operators.expressions.operations.casts import cast, moment, same_type, tried
from xmlstream.operators.expressions.operations.functions import FUNCTIONS, call, choice, element, field
from xmlstream.operators.expressions.operations.part import (
    VOID,
    Part,
    combined,
    decided,
    divided,
    in_full,
    interval,
    is_utc,
    joined,
    near,
    null,
    number,
    of_column,
    operand,
    require_silent,
    text,
    with_operands,
)
from xmlstream.operators.expressions.operations.python_functions import known_by
from xmlstream.operators.expressions.operations.spark_type import (
    NotDefined,
    NotProven,
    name_in_duckdb,
    read_type,
    unlike,
)
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import own
from xmlstream.punct_ns.sql_type import INTEGERS, TEMPORAL, ArrayType, Field, StructType

BIGINT, BOOLEAN, DOUBLE, INT, STRING = map(read_type, ("BIGINT", "BOOLEAN", "DOUBLE", "INT", "STRING"))

_COMPARED: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_COMPUTED: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "DIV",
}
_BITS: Mapping[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_MICROS: Mapping[str, int] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86_400 * 10**6,
    "WEEK": 7 * 86_400 * 10**6,
}
"""Microseconds of a unit, in UTC."""
_FAR = 100_000
"""The days by which a moment of the calendar is moved without leaving BIGINT, in microseconds."""


def known(tree: exp.Expr, schema: Schema) -> Part | None:
    """What is known of an expression over tuples of the schema; None if it is not in the tables.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.parse("n INT NOT NULL, d DECIMAL(5,2)")
    >>> found = known(expression("d * 2 > n"), schema)
    >>> found.type.name, found.nullable, found.fails
    ('BOOLEAN', True, False)
    >>> known(expression("md5(n)"), schema)
    """
    try:
        found = Translator(_columns_of(schema), "UTC").whole(tree)
    except QueryError:
        return None
    return None if found.rows else found


_RECENT: list[tuple[Schema, Mapping[str, Part]]] = []
"""The latest schemas: two that are equal are compared attribute by attribute, which one object need not be."""


def _columns_of(schema: Schema) -> Mapping[str, Part]:
    for seen, columns in tuple(_RECENT):
        if seen is schema:
            return columns
    _RECENT.insert(0, (schema, _columns(schema)))
    del _RECENT[8:]
    return _RECENT[0][1]


@lru_cache(maxsize=256)
def _columns(schema: Schema) -> Mapping[str, Part]:
    return {a.name.lower(): of_column("x", a.domain.type, a.domain.nullable or a.domain.opaque) for a in schema}


class Translator:
    """Translates the parts of one expression."""

    def __init__(self, columns: Mapping[str, Part], zone: str) -> None:
        self._columns, self._zone = columns, zone
        self._operands, self._given = count(), dict[str, Part]()
        self._order, self._calls = Reordering(), Holding()
        self._waiting = dict[int, str]()  # types of sums within sums that Spark computes in another order

    def whole(self, tree: exp.Expr) -> Part:
        """The part of a tree, with its text."""
        return in_full(self._part(tree))

    def part(self, tree: exp.Expr) -> Part:
        """The part of an operand, whose text may be a name."""
        return operand(self.whole(tree), next(self._operands))

    def _part(self, tree: exp.Expr) -> Part:
        for kind in type(tree).__mro__:
            if (how := _FORMS.get(kind)) is not None:
                try:
                    return how(self, tree)
                except NotProven as refused:
                    refused.tree = refused.tree or tree
                    raise
        around = call_name(tree.parent) if isinstance(tree, exp.Var | exp.Interval) else ""
        error = NotProven(f"{f'{around} with' if around else 'the expression'} {render(tree).replace('`', '')}")
        error.tree = tree.parent if around else tree
        raise error

    def parts(self, trees: Sequence[exp.Expr]) -> list[Part]:
        """The parts of several trees."""
        return [self.part(tree) for tree in trees]

    def column(self, tree: exp.Expr) -> Part:
        found = self._columns.get(tree.name.lower()) or self._given.get(tree.name)
        if found is None or isinstance(tree.this, exp.Star) or tree.args.get("table"):
            raise NotProven("*")
        read_type(found.type.name)  # which refuses a type that DuckDB lacks
        return found

    def field(self, tree: exp.Expr) -> Part:
        """A field of a structure."""
        if not isinstance(tree.expression, exp.Identifier):
            raise NotProven("a computed field")
        return field(self.part(tree.this), tree.expression.name)

    def literal(self, tree: exp.Expr) -> Part:
        """A number or a text."""
        written = str(tree.this)
        return Part(text(written), STRING, False, constant=written) if tree.is_string else number(written)

    def negative(self, tree: exp.Expr) -> Part:
        """A negative number; a literal with its sign is one literal."""
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return number(f"-{tree.this.this}")
        return signed(self.part(tree.this), "-")

    def computed(self, tree: exp.Expr) -> Part:
        """Arithmetic on numbers, or a moment and an interval."""
        operator = _COMPUTED[type(tree)]
        if operator in "+-" and any(isinstance(side.unnest(), exp.Interval) for side in (tree.this, tree.expression)):
            return self._moved(tree.this, operator, tree.expression)
        if operator in "+-" and call_name(tree.expression.unnest()) == "make_dt_interval":
            return self._moved(tree.this, operator, tree.expression)
        found = arithmetic(operator, self.part(tree.this), self.part(tree.expression), self._zone)
        if found.type.name not in INTEGERS or not isinstance(tree, exp.Add | exp.Mul):
            return found
        below = [self._waiting.get(id(side.unnest()), found.type.name) for side in (tree.this, tree.expression)]
        if any(name != found.type.name for name in below):
            raise NotProven(f"{tree.key.upper()} of several constants")
        if not self._order.is_moved(tree, found.type):
            return found
        around = tree.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        if isinstance(around, type(tree)):  # which puts all together
            self._waiting[id(tree)] = found.type.name
            return found
        return in_any_order(operator, self.parts(self._order.operands(tree)), found.type)

    def _moved(self, given: exp.Expr, operator: str, by: exp.Expr) -> Part:
        """A moment moved by an interval: by days of the calendar, and by microseconds."""
        if isinstance(given.unnest(), exp.Interval) and operator == "+":
            given, by = by, given
        of, seems = self.part(given), call_name(by.unnest()) == "make_dt_interval"
        days, micros = divided(interval(by))
        if of.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            raise unlike(f"{of.type.name} {operator} INTERVAL", [of.type.kind], ["TIMESTAMP"])
        if days and of.type.name == "TIMESTAMP" and not is_utc(self._zone):
            shown = f"({{}} {operator} to_microseconds({days * 86_400_000_000}))"
            of, days = replace(of, sql=near(of.sql, shown, self._zone)), 0
        moved = f"({of.sql} {operator} to_microseconds({days * 86_400_000_000 + micros}))"
        # Moments of the calendar, moved by some years, never leave BIGINT; those that are made of numbers may.
        may_leave = abs(days) > _FAR or any_in(given, lambda node: isinstance(node, exp.Anonymous), self._calls)
        return of.computed(moved, seems=seems, raises=may_leave, refuses=True)

    def compared(self, tree: exp.Expr) -> Part:
        """A comparison."""
        operator = _COMPARED[type(tree)]
        if operator in ("=", "<>"):
            one, other = self._sides(tree)
            return combined(f"({one.sql} {operator} {other.sql})", BOOLEAN, [one, other])
        one, other = self._sides(tree, unordered=("ARRAY", "BINARY"))
        left, right = (order_key(s.sql, s.type) if s.type.fields else s.sql for s in (one, other))
        return combined(f"({left} {operator} {right})", BOOLEAN, [one, other])

    def _sides(self, tree: exp.Expr, unordered: Sequence[str] = ()) -> list[Part]:
        """Both sides in one type, which is none of those whose order is not proven."""
        given = self.parts([tree.this, tree.expression])
        sides = same_type(beside_decimals(given, "comparison"), "comparison", self._zone)
        if any(side.type.same(VOID) or side.type.kind in ("MAP", *unordered) for side in sides):
            raise NotProven(f"comparison of {sides[0].type.name}")
        return sides

    def alike(self, tree: exp.Expr) -> Part:
        """`<=>` and IS DISTINCT FROM: both are null, or equal; or not."""
        one, other = self._sides(tree)
        operator = "IS NOT DISTINCT FROM" if isinstance(tree, exp.NullSafeEQ) else "IS DISTINCT FROM"
        return joined(f"({one.sql} {operator} {other.sql})", BOOLEAN, [one, other], nullable=False)

    def is_(self, tree: exp.Expr) -> Part:
        """IS NULL, IS TRUE, IS FALSE."""
        of = self.part(tree.this)
        if isinstance(tree.expression, exp.Null):
            require_silent("IS NULL", of)
            return of.computed(f"({of.sql} IS NULL)", BOOLEAN, nullable=False)
        if not isinstance(tree.expression, exp.Boolean) or of.type.name != "BOOLEAN":
            raise NotProven("IS")
        return of.computed(f"({of.sql} IS {'TRUE' if tree.expression.this else 'FALSE'})", BOOLEAN, nullable=False)

    def not_(self, tree: exp.Expr) -> Part:
        """NOT."""
        of = self._condition(tree.this)
        return of.computed(f"(NOT {of.sql})")

    def _condition(self, tree: exp.Expr) -> Part:
        of = self.part(tree)
        if of.type.same(VOID):
            return Part(null(BOOLEAN), BOOLEAN, True)
        if of.type.name != "BOOLEAN":
            raise unlike(f"condition of {of.type.name}", [of.type.kind], ["BOOLEAN"])
        return of

    def and_or(self, tree: exp.Expr) -> Part:
        """AND and OR: Spark leaves out the right side where the left one is false, or true."""
        is_and = isinstance(tree, exp.And)
        operator, test, result = ("AND", "(NOT {})", "false") if is_and else ("OR", "{}", "true")
        sides = [self._condition(side) for side in tree.flatten()]
        *before, last = sides
        if any(side.raises for side in sides[1:]):
            sql = f"({f' {operator} '.join([*(side.sql for side in before if side.nullable), last.sql])})"
            # A chain is one CASE: one within the other, each with its conditions twice, would grow exponentially.
            sql = decided([(side, test.format(side.sql), result) for side in before], sql)
            sides = [*(replace(side, named=()) for side in before), last]
        else:
            sql = f"({f' {operator} '.join(side.sql for side in sides)})"
        return joined(sql, BOOLEAN, sides)

    def in_(self, tree: exp.Expr) -> Part:
        """IN, among expressions."""
        if not tree.expressions or tree.args.get("query") or tree.args.get("unnest"):
            raise NotProven("IN with a subquery")
        sides = same_type(self.parts([tree.this, *tree.expressions]), "IN", self._zone)
        if sides[0].type.same(VOID) or sides[0].type.fields or sides[0].type.kind in ("MAP", "ARRAY", "BINARY"):
            raise NotProven(f"IN of {sides[0].type.name}")
        if any(side.raises for side in sides[1:]):
            raise NotProven("IN with a member that can raise an error")
        sql = f"({sides[0].sql} IN ({', '.join(side.sql for side in sides[1:])}))"
        return joined(sql, BOOLEAN, sides)

    def between(self, tree: exp.Expr) -> Part:
        """BETWEEN: two comparisons, joined with AND."""
        if tree.args.get("symmetric"):
            raise NotProven("BETWEEN SYMMETRIC")
        of, named = self._once(tree.this)
        low = exp.GTE(this=of.copy(), expression=tree.args["low"].copy())
        high = exp.LTE(this=of.copy(), expression=tree.args["high"].copy())
        found = self.whole(exp.And(this=low, expression=high))
        return replace(found, sql=with_operands(found.sql, named))

    def joined(self, tree: exp.Expr) -> Part:
        """`||`; a chain that begins with a text is one call."""
        first, *others = tree.flatten()
        if (begun := self.part(first)).type.name != "STRING":
            return call("concat", self.parts([tree.this, tree.expression]), self._zone)
        return call("concat", [begun, *self.parts(others)], self._zone)

    def like(self, tree: exp.Expr) -> Part:
        """LIKE and ILIKE with a literal pattern without escapes."""
        of, pattern = self.parts([tree.this, tree.expression])
        require_text("LIKE", of)
        if of.type.name != "STRING" or pattern.word is None or "\\" in pattern.word:
            raise NotProven("LIKE with a computed pattern, or with an escape")
        if isinstance(tree, exp.ILike):
            if not pattern.word.isascii():
                raise NotProven("ILIKE of letters beyond ASCII")
            lower = call("lower", [of], self._zone).sql
            of, pattern = of.computed(lower, refuses=True), self.literal(exp.Literal.string(pattern.word.lower()))
        sql = f"({of.sql} {'NOT ' if tree.args.get('negate') else ''}LIKE {pattern.sql})"
        return of.computed(sql, BOOLEAN)

    def case(self, tree: exp.Expr) -> Part:
        """CASE, with conditions or with values."""
        of, named = (None, ()) if tree.this is None else self._once(tree.this)
        branches = []
        for branch in tree.args["ifs"]:
            test = branch.this if of is None else exp.EQ(this=of.copy(), expression=branch.this.copy())
            branches.append((self.part(test), self.part(branch.args["true"])))
        default = tree.args.get("default")
        found = in_full(choice(branches, None if default is None else self.part(default), self._zone))
        return replace(found, sql=with_operands(found.sql, named))

    def _once(self, tree: exp.Expr) -> tuple[exp.Expr, Sequence[tuple[str, str]]]:
        """A tree to stand in several places for an operand, which is translated once, and the text for its name."""
        if isinstance(tree, exp.Column | exp.Literal):
            return tree, ()
        of, name = self.whole(tree), own(f"operand{next(self._operands)}_")
        self._given[name] = replace(of, sql=name)
        return exp.column(name), [(name, of.sql)]

    def cast(self, tree: exp.Expr) -> Part:
        """CAST; a literal with a suffix is read as such."""
        if tree.args.get("format"):
            raise NotProven("CAST with a format")
        to = read_type(type_text(tree.args["to"]))
        of = self.part(tree.this)
        if tree.args.get("safe"):
            return tried(of, to, self._zone)
        if isinstance(tree, exp.Cast) and not isinstance(tree, exp.TryCast) and of.constant is not None:
            return moment(of.constant, to, self._zone)
        found = cast(of, to, self._zone)
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            whole = of.constant if of.type.name in INTEGERS and to.name in INTEGERS else None
            return replace(found, typed=True, constant=whole)
        return found

    def bracket(self, tree: exp.Expr) -> Part:
        """An element of an array."""
        if len(tree.expressions) != 1 or call_name(tree.this.unnest()) == "array":
            raise NotProven("[] of an array that is written out")
        return element(*self.parts([tree.this, tree.expressions[0]]), first=0)

    def trim(self, tree: exp.Expr) -> Part:
        """TRIM of blanks on both sides."""
        of = self.part(tree.this)
        require_text("TRIM", of)
        if tree.expression or tree.args.get("position") or of.type.name != "STRING":
            raise NotProven("TRIM of characters")
        return of.computed(f"trim({of.sql}, ' ')")

    def substring(self, tree: exp.Expr) -> Part:
        """SUBSTRING from a literal place on, which counts from 1, of a literal length."""
        of = self.part(tree.this)
        start, length = tree.args.get("start"), tree.args.get("length")
        given = [self.part(each) for each in (start, length) if each is not None]
        require_text("SUBSTRING", of)
        if of.type.name != "STRING" or any(part.whole is None for part in given):
            raise NotProven("SUBSTRING of computed places")
        places = [max(1, given[0].whole or 1), *(part.whole for part in given[1:])]
        return of.computed(f"substring({of.sql}, {', '.join(map(str, places))})")

    def extract(self, tree: exp.Expr) -> Part:
        """EXTRACT of a part that a function names."""
        return self._part_of_moment(tree.this.name, tree.expression)

    def _part_of_moment(self, called: str, moment: exp.Expr) -> Part:
        if (name := called.lower()) not in ("year", "quarter", "month", "day", "hour", "minute"):
            raise NotProven(f"EXTRACT({name.upper()} FROM …)")
        return call(name, [self.part(moment)], self._zone)

    def position(self, tree: exp.Expr) -> Part:
        """POSITION('a' IN text)."""
        if tree.args.get("position") is not None:
            raise NotProven("POSITION from a place on")
        return call("instr", self.parts([tree.this, tree.args["substr"]]), self._zone)

    def bits(self, tree: exp.Expr) -> Part:
        """`&`, `|` and `^` of integers."""
        operator = _BITS[type(tree)]
        sides = self.parts([tree.this, tree.expression])
        if any(side.type.name not in INTEGERS for side in sides):
            kinds = {side.type.kind for side in sides}
            is_defined = kinds & {*INTEGERS, "VOID"} and kinds <= {*INTEGERS, "VOID", "STRING"}
            raise (NotProven if is_defined else NotDefined)(f"{sides[0].type.name} {operator} {sides[1].type.name}")
        one, other = same_type(sides, operator, self._zone)
        sql = f"xor({one.sql}, {other.sql})" if operator == "^" else f"({one.sql} {operator} {other.sql})"
        return combined(sql, one.type, [one, other])

    def function(self, tree: exp.Expr) -> Part:
        """A call: of a function of one row, or of an aggregate."""
        name = call_name(tree)
        if name in ("get", "element_at") and tree.expressions and call_name(tree.expressions[0]) == "array":
            raise NotProven(f"{name} of an array that is written out")
        if name in ("try_add", "try_subtract") and any(isinstance(e.unnest(), exp.Interval) for e in tree.expressions):
            return self._tried(tree.expressions, "+" if name == "try_add" else "-")
        if (function := known_by(name)) is not None:
            return function.part(name, self.parts(tree.expressions), self._zone)
        if name in ("timestampdiff", "datediff", "date_diff") and len(tree.expressions) == 3:
            return self._difference(tree)
        if name in ("date_part", "datepart") and len(tree.expressions) == 2 and tree.expressions[0].is_string:
            return self._part_of_moment(tree.expressions[0].name, tree.expressions[1])
        if name in FUNCTIONS:
            if any(call_name(e.unnest()) in _REORDERED.get(name, ()) for e in tree.expressions):
                raise NotProven(f"{name} of a function that tries")
            if name == "if" and tree.expressions:
                return call(name, [self._condition(tree.expressions[0]), *self.parts(tree.expressions[1:])], self._zone)
            return call(name, self.parts(tree.expressions), self._zone)
        if name in ("sort_array", "array_sort"):
            return self._sorted(tree)
        if name == "arrays_zip":
            return self._zipped(tree)
        if name == "collect_list":  # the rows of a function of groups, which sorts them itself
            return self._collected(tree)
        return self._rows(tree, Rows())

    def _tried(self, operands: Sequence[exp.Expr], operator: str) -> Part:
        """A moment moved by an interval, null where that leaves the calendar."""
        of, named = self._once(operands[0])
        if self.part(of).raises:
            raise NotProven("try_add with an operand that can raise an error")
        moved = self._moved(of, operator, operands[1])
        return Part(with_operands(f"TRY({moved.sql})", named), moved.type, True, rows=moved.rows)

    def _difference(self, tree: exp.Expr) -> Part:
        unit, *given = tree.expressions
        if (micros := _MICROS.get(unit.name.upper())) is None:
            raise NotProven(f"{call_name(tree)} by {unit.name}")
        sides = self.parts(given)
        if any(side.type.name != "TIMESTAMP" for side in sides):
            what = f"timestampdiff({unit.name.upper()}, {sides[0].type.name}, {sides[1].type.name})"
            raise unlike(what, [side.type.kind for side in sides], TEMPORAL, TEMPORAL)
        if not is_utc(self._zone):  # Spark counts by the zone's clocks: some days are longer.
            raise NotProven(f"timestampdiff in {self._zone}")
        earlier, later = (f"epoch_us({side.sql})" for side in sides)
        by = "" if micros == 1 else f" // {micros}"  # towards zero, as in Spark
        return combined(f"(({later} - {earlier}){by})" if by else f"({later} - {earlier})", BIGINT, sides)

    def _sorted(self, tree: exp.Expr) -> Part:
        """`sort_array` and `array_sort`, of `collect_set` and `collect_list`, too: their order is sorted away."""
        name = call_name(tree)
        if len(tree.expressions) != 1:
            raise NotProven(f"{name} with an order")
        given = tree.expressions[0]
        of = self._collected(given) if call_name(given) in ("collect_set", "collect_list") else self.part(given)
        element = of.type.element
        if element is None or (of.type.has_nulls and name == "sort_array"):
            raise NotProven(f"{name}({of.type.name})")
        if element.fields:
            key = order_key("x", element)
            sql = f"list_transform(list_sort(list_transform({of.sql}, lambda x: row({key}, x))), lambda y: y[2])"
            return of.computed(sql)
        order_key("x", element)
        return of.computed(f"list_sort({of.sql}, 'ASC', 'NULLS LAST')")

    def _zipped(self, tree: exp.Expr) -> Part:
        """Arrays beside each other as one array of structures, whose fields are called as the columns, else by number.

        It is as long as the longest of them, and null where one of them is.
        """
        arrays = self.parts(tree.expressions)
        names = [_column_name(each.unnest()) or str(number) for number, each in enumerate(tree.expressions)]
        elements = [array.type.element for array in arrays if array.type.element is not None]
        if len(elements) < len(arrays) or not arrays or any(element.same(VOID) for element in elements):
            types = ", ".join(array.type.name for array in arrays)
            raise unlike(f"arrays_zip({types})", [array.type.kind for array in arrays], *[["ARRAY"]] * len(arrays))
        if len({name.lower() for name in names}) < len(names):
            raise NotProven("arrays_zip of two arrays of one name")
        fields = [
            f"{name_in_duckdb(name)} := struct_extract(x, {number})" for number, name in enumerate(names, start=1)
        ]
        given = ", ".join(array.sql for array in arrays)
        zipped = f"list_transform(list_zip({given}), lambda x: struct_pack({', '.join(fields)}))"
        some = " OR ".join(f"{array.sql} IS NULL" for array in arrays)
        made = StructType(tuple(Field(*pair) for pair in zip(names, elements, strict=True)))
        sql = f"CASE WHEN {some} THEN NULL ELSE {zipped} END"
        return combined(sql, ArrayType(made, has_nulls=False), arrays)

    def _collected(self, tree: exp.Expr) -> Part:
        if len(tree.expressions) != 1:
            raise NotProven(f"{call_name(tree)} of {len(tree.expressions)} arguments")
        return collected(call_name(tree) == "collect_set", self.whole(tree.expressions[0]), Rows())

    def _rows(self, tree: exp.Expr, rows: Rows) -> Part:
        """An aggregate, or a function over rows."""
        name = call_name(tree)
        if name not in AGGREGATES and name not in WINDOWS:
            raise NotProven(f"the function {name}")
        given = list(tree.expressions)
        if given and isinstance(given[0], exp.Distinct):
            rows, given = replace(rows, distinct=True), given[0].expressions
        if name == "count" and len(given) == 1 and (isinstance(given[0], exp.Star) or _is_literal(given[0])):
            if rows.distinct:
                raise NotProven("count(DISTINCT *)")
            given = []
        return aggregate(name, list(map(self.whole, given)), rows)

    def any_(self, tree: exp.Expr) -> Part:
        """`any(condition)`, which is read as a form of its own."""
        return aggregate("any", [in_full(self._condition(tree.this))], Rows())

    def filter(self, tree: exp.Expr) -> Part:
        """An aggregate with FILTER."""
        return self._aggregate(tree.this, self._filtered(tree))

    def _filtered(self, tree: exp.Expr) -> Rows:
        where = in_full(self._condition(tree.expression.this))
        if where.raises:
            raise NotProven("FILTER with a condition that can raise an error")
        return Rows(where=where.sql)

    def _aggregate(self, tree: exp.Expr, rows: Rows) -> Part:
        if isinstance(tree, exp.Any):
            return aggregate("any", [in_full(self._condition(tree.this))], rows)
        if not isinstance(tree, exp.Anonymous):
            raise NotProven(f"the form {tree.key.upper()}")
        if rows.where and any(part.raises for part in self.parts([e for e in tree.expressions if _is_value(e)])):
            raise NotProven(f"{call_name(tree)} with FILTER, of an operand that can raise an error")
        return self._rows(tree, rows)

    def window(self, tree: exp.Expr) -> Part:
        """A function over rows."""
        of, rows = tree.this, Rows()
        if isinstance(of, exp.IgnoreNulls):
            of, rows = of.this, Rows(ignores_nulls=True)
        if isinstance(of, exp.Filter):
            of, rows = of.this, self._filtered(of)
        return self._aggregate(of, over(tree, call_name(of), rows, self.whole, self._zone))


_SUMS = ("try_add", "try_subtract")
_REORDERED = {**dict.fromkeys(_SUMS, _SUMS), "try_multiply": ("try_multiply",)}
"""Functions that Spark computes in another order where one stands in the other."""


def require_text(what: str, part: Part) -> None:
    """Refuses an array or a structure, which Spark does not cast to a text by itself."""
    if isinstance(error := unlike(f"{what} of {part.type.name}", [part.type.kind], ["STRING"]), NotDefined):
        raise error


def _is_value(tree: exp.Expr) -> bool:
    return not isinstance(tree, exp.Star | exp.Distinct)


def _column_name(tree: exp.Expr) -> str:
    """The name of a column, or of a field; empty for any other expression."""
    return tree.name if isinstance(tree, exp.Column | exp.Dot) else ""


def _is_literal(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal | exp.Boolean)


_FORMS: Mapping[type, Callable[[Translator, exp.Expr], Part]] = {
    exp.Column: Translator.column,
    exp.Dot: Translator.field,
    exp.Literal: Translator.literal,
    exp.Paren: lambda self, tree: self.part(tree.this),
    exp.Boolean: lambda _, tree: Part("true" if tree.this else "false", BOOLEAN, False),
    exp.Null: lambda _, __: Part("NULL", VOID, True),
    exp.Neg: Translator.negative,
    **dict.fromkeys(_COMPUTED, Translator.computed),
    **dict.fromkeys(_COMPARED, Translator.compared),
    **dict.fromkeys(_BITS, Translator.bits),
    exp.NullSafeEQ: Translator.alike,
    exp.NullSafeNEQ: Translator.alike,
    exp.Is: Translator.is_,
    exp.Not: Translator.not_,
    exp.And: Translator.and_or,
    exp.Or: Translator.and_or,
    exp.In: Translator.in_,
    exp.Between: Translator.between,
    exp.DPipe: Translator.joined,
    exp.Like: Translator.like,
    exp.ILike: Translator.like,
    exp.RegexpLike: lambda self, tree: call("regexp_like", self.parts([tree.this, tree.expression]), self._zone),
    exp.Case: Translator.case,
    exp.Cast: Translator.cast,
    exp.Bracket: Translator.bracket,
    exp.Trim: Translator.trim,
    exp.Substring: Translator.substring,
    exp.Extract: Translator.extract,
    exp.StrPosition: Translator.position,
    exp.Anonymous: Translator.function,
    exp.Any: Translator.any_,
    exp.Filter: Translator.filter,
    exp.Window: Translator.window,
}
"""The forms of trees that are proven, each with its method."""
