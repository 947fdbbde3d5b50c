"""The builder: a query built operator by operator, with PySpark's method names.

Arguments are Spark SQL as text, or a `Column` of PySpark that can be written as such. A `Query` is immutable; each
method returns a new one. A method builds the same plan as the SQL that it stands for: `q.select("a").where("a > 1")` is
`SELECT a FROM q`, then `SELECT * … WHERE a > 1`.

`Query.group_by` and `Query.tuple_window` return `Groups` and `TupleWindows`, to aggregate or rank. `multiway_join`
joins many queries at once: a chain of punctuations across them purges tuples that no pair of them could purge (Li et
al. 2006, §3.2.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

from xmlstream.builder import method_sql
from xmlstream.builder.given_tables import with_given_lists
from xmlstream.builder.method_sql import JoinType, argument
from xmlstream.builder.run_options import ON_GROUPS, ON_QUERIES, ON_WINDOWS, called, in_sentences
from xmlstream.builder.runnable import Runnable
from xmlstream.dataclasses import dataclass
from xmlstream.extensions import extension
from xmlstream.operators.describe import Describe
from xmlstream.operators.distinct_on import DistinctOn
from xmlstream.operators.expressions.operations.python_functions import declared_function
from xmlstream.operators.joins.purge_strategy import EAGER, strategy_named
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.punctuate import Ungrammatical
from xmlstream.operators.punctuators.rule import Rule
from xmlstream.operators.secret_window import SecretWindow
from xmlstream.operators.sort import Sort
from xmlstream.operators.top_n import Rank
from xmlstream.plan.nodes import Node, unique
from xmlstream.plan.written_plan import tree
from xmlstream.punct_ns.errors import QueryError, UsageError, in_callers_words
from xmlstream.punct_ns.slices import quoted
from xmlstream.runtime.loop.query_inputs import with_members
from xmlstream.safety.explanation import Explanation, Format, explained
from xmlstream.session.engines import engine_of
from xmlstream.sql import translation
from xmlstream.sql.clauses.joining import equalities_between, with_unique_names
from xmlstream.sql.clauses.plan_builder import combined_relation, distinct, finished, ordered
from xmlstream.sql.clauses.relation import Item, Relation, resolve
from xmlstream.sql.clauses.result_order import limited
from xmlstream.sql.clauses.row_windows import TupleWindow, over_tuples, require_arrival_order
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.supported import require_supported
from xmlstream.sql.script import analyst_of, plan_over
from xmlstream.sql.spark.functions import aggregates_in
from xmlstream.sql.statements import parse_statements
from xmlstream.sql.tables.stream_options import ruled, rules_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from xmlstream.operators.expressions.operations.accumulators import Accumulator


@in_sentences("a query", ON_QUERIES)
@dataclass(frozen=True, slots=True, repr=False)
class Query(Runnable):
    """A query over punctuated streams, and the Spark session to run it in; created by `read` and `from_sql`."""

    @property
    def columns(self) -> list[str]:
        """The names of the result's attributes."""
        return list(self.schema.names)

    def __repr__(self) -> str:
        return f"Query[{', '.join(f'{a.name}: {a.domain.type}' for a in self.schema)}]"

    def explain(
        self, format: Format | Literal["plan"] | None = None, *, as_written: bool = False, follow: bool = False
    ) -> str:
        """Returns the plan as a tree, or the verdict on it before it runs.

        Args:
            format: `plan` for the tree alone; `text`, `json`, `svg` or `html` for what each operator promises, when it
                answers and how long it keeps tuples. By default `text` if sources have no known end, else `plan`.
            as_written: Explain the plan as written; by default the optimized plan, which runs.
            follow: Judge the query as `start` runs it: its sources have no known end.
        """
        root = with_members(self.root if as_written else self.plan, engine_of(self.spark))
        format = format or ("text" if follow else "plan")
        if format not in (known := ("plan", *get_args(Format))):
            raise UsageError(
                f"explain has no format {format!r}", hint=f'explain("text") says the most; there are {", ".join(known)}'
            )
        if format == "plan":
            return Explanation.of(root, format, tree(root), follow=follow)
        text = explained(root, follow=follow, format_=format)
        text = in_callers_words(text, "follow=True") if format == "text" else text
        return Explanation.of(root, format, text, follow=follow)

    def _repr_html_(self) -> str:
        """The picture of the plan with its verdicts, which notebooks show."""
        return explained(self.plan, format_="svg")

    def select(self, *items: str | Column) -> Query:
        """Computes expressions for each tuple, as SQL's SELECT: `select("hour", "currtmp * 2 AS twice", "*")`."""
        return self._of("SELECT ", *method_sql.sql_list(items), " FROM `input`")

    def where(self, condition: str | Column) -> Query:
        """Keeps the tuples for which the condition is true."""
        return self._of("SELECT * FROM `input` WHERE ", argument(condition))

    filter = where
    selectExpr = select  # noqa: N815 - as PySpark spells it

    def with_column(self, name: str, expression: str | Column) -> Query:
        """Adds a computed attribute, or replaces the attribute of that name."""
        return self._of("SELECT ", *method_sql.with_column(self.schema, name, expression), " FROM `input`")

    withColumn = with_column  # noqa: N815 - as PySpark spells it

    def with_column_renamed(self, old: str, new: str) -> Query:
        """Renames an attribute."""
        return self._of("SELECT ", method_sql.renamed_sql(self.schema, old, new), " FROM `input`")

    withColumnRenamed = with_column_renamed  # noqa: N815 - as PySpark spells it

    def drop(self, *names: str) -> Query:
        """Removes attributes."""
        return self._of("SELECT ", method_sql.without_columns(self.schema, names), " FROM `input`")

    def explode(self, array: str | Column, element: str, *, outer: bool = False) -> Query:
        """Makes one tuple for each element of an array, as SQL's LATERAL VIEW explode: `explode("tags", "tag")`.

        Args:
            array: An attribute or an expression of an array type.
            element: Name of the new attribute for the element; it comes after all other attributes.
            outer: Keep a tuple whose array is empty or null, with null as its element.
        """
        view = f"LATERAL VIEW{' OUTER' if outer else ''} explode("
        return self._of(f"SELECT * FROM `input` {view}", argument(array), f") exploded AS {quoted(element)}")

    def window(self, moment: str | Column, size: str, slide: str | None = None, start: str | None = None) -> Query:
        """Adds an attribute `window`, the time window of a moment, to group by: `window("ts", "10 minutes")`.

        A tuple comes out once for each window that contains it; not at all if its moment is null.

        Args:
            moment: An attribute or an expression of type TIMESTAMP.
            size: Length of a window, as for SQL's `window`, such as "1 hour 30 minutes".
            slide: Time from the start of a window to the start of the next; by default `size`.
            start: Offset of the starts of windows from multiples of `slide`.
        """
        given = [size, slide if start is None else slide or size, start]
        lengths = ", ".join(method_sql.text_literal(length) for length in given if length is not None)
        return self._of("SELECT *, window(", argument(moment), f"\n, {lengths}) AS window FROM `input`")

    def distinct(self) -> Query:
        """Removes duplicates, as SQL's SELECT DISTINCT."""
        return self._of("SELECT DISTINCT * FROM `input`")

    def drop_duplicates(self, subset: str | Sequence[str] | None = None) -> Query:
        """Of each combination of values of these attributes the first tuple, in the order in which the source has it.

        Args:
            subset: The attributes; without, each different tuple comes once, as from `distinct`.

        Raises:
            QueryError: No attribute is named, or something below has no order of tuples, such as a merge or a join.
            UsageError: There is no such attribute.
        """
        if subset is None:
            return self.distinct()
        names = [subset] if isinstance(subset, str) else subset
        if not names:
            raise QueryError("drop_duplicates without an attribute", hint="name the attributes to compare")
        require_arrival_order(self.root, "the first tuple of each key")
        keys = tuple(self.schema.attribute(name).name for name in names)
        return Query(self.spark, Node(DistinctOn(keys), (self.root,), "distinct_on"))

    dropDuplicates = drop_duplicates  # noqa: N815 - as PySpark spells it

    def union(self, other: Query) -> Query:
        """The tuples of both queries without duplicates, by position, as SQL's UNION; `union_all` keeps duplicates.

        Differs: PySpark's `union` is SQL's UNION ALL.
        """
        return self._combined("union", other, without_duplicates=True)

    def union_all(self, other: Query) -> Query:
        """All tuples of both queries, by position, as SQL's UNION ALL."""
        return self._combined("union", other)

    unionAll = union_all  # noqa: N815 - as PySpark spells it

    def intersect(self, other: Query) -> Query:
        """The tuples that both queries have, without duplicates, by position, as SQL's INTERSECT."""
        return self._combined("intersect", other)

    def subtract(self, other: Query) -> Query:
        """The tuples that the other query does not have, without duplicates, by position, as SQL's EXCEPT."""
        return self._combined("except", other)

    def join(
        self,
        other: Query,
        on: str | Column | Sequence[str],
        how: JoinType = "inner",
        *,
        left: str = "left",
        right: str = "right",
    ) -> Query:
        """Joins this query with another one: the pairs of tuples that satisfy a condition.

        Args:
            other: The right side of the join.
            on: A condition with an equality between the sides, such as `"left.id = right.auction"`; or the name of an
                attribute of both sides, or several; the result has it once, as its first attribute.
            how: `inner`, `left`, `right`, `full`, `semi` or `anti`, or PySpark's names for them, such as `left_outer`.
            left: Name of this query in the condition.
            right: Name of the other query in the condition.

        Raises:
            QueryError: The condition has no equality between the sides, or two attributes of the result have one name.
        """
        return self._of("SELECT * FROM ", *method_sql.joined_sql(on, how, left, right), other=other)

    def join_asof(
        self,
        other: Query,
        on: str,
        by: str | Sequence[str],
        how: Literal["inner", "left", "leftouter", "left_outer"] = "inner",
        *,
        tolerance: str | int | None = None,
        left: str = "left",
        right: str = "right",
    ) -> Query:
        """Joins each tuple with the latest tuple of its key in the other query that is not later; SQL's ASOF JOIN.

        A result goes out as soon as punctuations of the other query exclude a later partner.

        Args:
            other: The query with the partners.
            on: An attribute of both queries; the other query's is called `right_<name>` in the result. Or a comparison
                by `>=` or `>`, such as `"left.dateTime > right.since"`.
            by: The keys: attributes of both queries; the result has each once, before the others.
            how: `inner`, or `left` to keep tuples without a partner.
            tolerance: Largest difference in `on` between a tuple and its partner, as Spark SQL: `5`,
                `"INTERVAL 1 HOUR"`; by default any. Tuples too old for all tuples to come are purged, even the latest
                of a key.
            left: Name of this query in the comparison.
            right: Name of the other query in the comparison, and the prefix of its `on` attribute.

        Raises:
            QueryError: The comparison or the kind of join is not one of these, or two attributes of the result have one
                name.
        """
        keys = [by] if isinstance(by, str) else list(by)
        return self._of(
            *method_sql.asof_sql(self.schema, other.schema, on, keys, how, left, right, tolerance), other=other
        )

    def order_by(self, *keys: str | Column, ascending: bool | Sequence[bool] = True) -> Query:
        """Sorts: a tuple goes out as soon as punctuations exclude all tuples before it: `order_by("hour DESC")`.

        Args:
            keys: The attributes, each perhaps with a direction.
            ascending: The direction of keys that name none, or that of each.
        """
        directions = [bool(ascending)] * len(keys) if isinstance(ascending, int) else ascending
        if not keys or len(directions) != len(keys):
            raise QueryError(f"{len(directions)} directions of {len(keys)} keys", hint='order_by("a DESC", "b")')
        sorts = (method_sql.sort_key_sql(key, ascending=up) for key, up in zip(keys, directions, strict=True))
        return self._of("SELECT * FROM `input` ORDER BY ", ", ".join(sorts))

    orderBy = sort = order_by  # noqa: N815 - as PySpark spells it

    def limit(self, n: int) -> Query:
        """The first n tuples of a sorted query, in order, once the input is closed: `order_by("t").limit(10)`.

        Raises:
            QueryError: The query is not sorted.
        """
        if not isinstance(self.root.operator, Sort):
            raise QueryError("limit without an order", hint=f'order_by("…").limit({n}) says which tuples come first')
        keys = self.root.operator.keys
        first = limited(Relation.of(self.root.inputs[0]), n, 0, keys, analyst_of(self.spark))
        return Query(self.spark, ordered(first.node, keys))

    def describe_punctuations(self, *attributes: str, watch: Sequence[str] = (), patterns: Sequence[str] = ()) -> Query:
        """Passes all tuples, and only the punctuations that describe these attributes.

        Args:
            attributes: The attributes that punctuations may restrict.
            watch: Further attributes: once punctuations cover all their values, a punctuation follows that does not
                restrict them.
            patterns: For each watched attribute the pattern that must be covered; checked to match its whole domain.

        Differs: PySpark's `describe` computes statistics.
        """
        operator = Describe(attributes, tuple(watch), tuple(patterns))
        return Query(self.spark, Node(operator, (self.root,), "describe"))

    def punctuate(
        self, rule: Rule | str, ungrammatical: Ungrammatical = "fail", tables: Mapping[str, Any] | None = None
    ) -> Query:
        """Adds the punctuations that follow from a rule about the source, such as an order; only directly on a source.

        Args:
            rule: For example `ByOrder("ts")`, or as in SQL `"order of ts, slack 5m"`, or several: `"…; …"`.
            ungrammatical: What to do with a tuple that breaks the rule.
            tables: Tables by name, each as for `from_dataframe`, that list the senders of a roster: `"roster of sid
                from senders"`; beside them, a session of Spark's has its temporary views.

        Raises:
            QueryError: The rule does not fit the source, or its condition is none on a row of it.
        """
        if isinstance(rule, str):
            query = self
            for each in rules_of(rule, self.schema):
                query = query.punctuate(each, ungrammatical, tables)
            return query
        if isinstance(rule, type) or not hasattr(rule, "new_punctuations"):
            raise QueryError(f"{rule!r} is not a rule", hint='for example punctuate("order of ts, slack 5m")')
        if any(isinstance(getattr(rule, of, None), str) for of in ("slack", "max_ahead", "delay", "idle")):
            (rule,) = rules_of(str(rule), self.schema)  # which reads spans of time
        if rule.condition is not None:
            text = QueryText.of(rule.condition, f"'{rule.condition}'")
            translation.require_condition(text, self.root, analyst_of(self.spark))
        return Query(self.spark, with_given_lists(self.spark, ruled(self.root, [rule], ungrammatical), tables))

    def group_by(self, *keys: str | Column) -> Groups:
        """Groups the tuples by the values of these expressions; without expressions all tuples are one group."""
        return Groups(self, keys)

    groupBy = groupby = group_by  # noqa: N815 - as PySpark spells it

    def tuple_window(self, size: int, slide: int | None = None, per: str | Sequence[str] = ()) -> TupleWindows:
        """Windows of a number of tuples, in order of arrival: `tuple_window(10, 5, per="sid").agg("avg(v)")`.

        Args:
            size: Number of tuples in a window.
            slide: Number of tuples from one window to the next; by default `size`.
            per: Attributes: each combination of their values has windows of its own.
        """
        names = (per,) if isinstance(per, str) else tuple(per)
        return TupleWindows(self, TupleWindow(size, size if slide is None else slide, names))

    def window_as(
        self, engine: str, time: str, size: int, slide: int, *, batch: str | None = None, of_tuples: bool = False
    ) -> Groups:
        """The windows that another engine would report for this stream, to aggregate (Botan et al. 2010).

        Args:
            engine: `stream`, `coral8`, `streambase`, or `xmlstream` itself.
            time: The time attribute: an integer, never null; tuples must come in its order.
            size: Length of a window, in units of `time`.
            slide: Distance of windows, in units of `time`.
            batch: The attribute with the batch number, for engines that react to batches.
            of_tuples: Size and slide are numbers of tuples.

        Raises:
            QueryError: The tuples have no order, for example because they come out of a merge or a join.
        """
        in_windows = extension("windows of an engine")
        node: Node = in_windows(self.root, engine, time, size, slide, batch=batch, of_tuples=of_tuples)
        assert isinstance(node.operator, SecretWindow)
        return Groups(Query(self.spark, node), tuple(map(quoted, node.operator.reported)))

    def _of(self, *parts: str | QueryText, **others: Query) -> Query:
        """The query of a SQL text in which `input` is this query; `others` are further queries by name."""
        for other in others.values():
            _require_query(other)
        nodes = {"input": self.root, **{name: query.root for name, query in others.items()}}
        return Query(self.spark, plan_over(self.spark, QueryText.joined(parts), nodes))

    def _combined(self, kind: str, other: Query, *, without_duplicates: bool = False) -> Query:
        _require_query(other)
        here, there = len(self.schema), len(other.schema)
        if here != there:
            what = f"the queries have {here} and {there} attributes"
            raise QueryError(what, hint="select the same number of attributes on both sides")
        analyst = analyst_of(self.spark)
        whole = combined_relation(kind, [Relation.of(self.root), Relation.of(other.root)], analyst)
        return Query(self.spark, (distinct(whole, analyst, "union") if without_duplicates else whole).node)


@in_sentences("a grouped query", ON_GROUPS)
@dataclass(frozen=True, slots=True, repr=False)
class Groups:
    """The groups of a query's tuples, to aggregate, to rank, or to give to a function."""

    query: Query
    keys: tuple[str | Column, ...]

    def __repr__(self) -> str:
        return f"Groups[{', '.join(map(method_sql.sql_text, self.keys))}] of {self.query!r}"

    def agg(self, *aggregates: str | Column, **named: str) -> Query:
        """One tuple for each group, as soon as the group is complete: its keys, then the aggregates.

        Each argument is an expression over aggregates and keys: `agg("max(a) - min(a) AS spread")`, or
        `agg(spread="max(a) - min(a)")`.

        Raises:
            QueryError: There are neither keys nor aggregates, or no expression without keys has an aggregate.
        """
        aggregates = method_sql.with_names(aggregates, named)
        if not self.keys and not aggregates:
            raise QueryError("agg without a key and without an aggregate", hint='for example agg("count(*) AS n")')
        items = method_sql.sql_list((*self.keys, *aggregates))
        numbers = ", ".join(str(number + 1) for number in range(len(self.keys)))
        texts = [*map(method_sql.sql_text, aggregates)]
        trees = (parse_statements(QueryText.of(f"SELECT {text}"))[0].tree.expressions for text in texts)
        if not numbers and not aggregates_in(*chain.from_iterable(trees)):
            raise QueryError(f"no aggregate in {', '.join(texts)}", hint="group_by needs a key, or use select")
        return self.query._of("SELECT ", *items, " FROM `input`", f" GROUP BY {numbers}" if numbers else "")

    def apply(self, function: Callable[..., Any] | Accumulator, schema: str) -> Query:
        """Calls a function of Python once for each group, with all of its rows, as soon as the group is complete.

        A group's tuples are kept until punctuations close it. The function gets the key and the rows, `f(key, rows)`,
        or the rows alone: a named tuple of the keys' values, and a `pyarrow.Table` with the query's attributes, or a
        `pandas.DataFrame` if its parameter is annotated so. Rows are sorted by their attributes, from the first to the
        last: `select("ts", "price", "auction")` before `group_by` gives them in order of time.

        It returns rows: a table of Arrow, a DataFrame, or dictionaries, which it may yield; `[]` for none. It must
        return the same rows for the same group whenever it is called. Without keys, it gets all rows at the end, even
        if there are none.

        An accumulator in place of the function has one state of a group kept in place of its tuples: a class, or an
        object, with a text `state`, the columns of a state, and the methods `zero()`, `add(state, rows)`,
        `merge(one, other)`, which must be associative and commutative, and `finish(key, state)`, which returns rows.

        Args:
            function: The function, or the accumulator.
            schema: The attributes of its rows, such as "auction BIGINT, slope DOUBLE". One that is called as a key is
                the key: the function may leave it out, and may not return another value. So punctuations of keys pass;
                they do for those keys alone.

        Raises:
            QueryError: The function takes other arguments, the accumulator lacks a method, or the schema has a type
                that functions do not return.
        """
        if not isinstance(schema, str):
            raise QueryError(
                f"{schema!r} is no schema", hint='name the attributes of the rows: apply(f, "k INT, x DOUBLE")'
            )
        name = re.sub(r"\W", "", getattr(function, "__name__", type(function).__name__))
        made = declared_function(function, name, f"TABLE ({schema})")
        pairs = [method_sql.named_key(key) for key in self.keys]
        keys = [method_sql.argument(text) if name is None else quoted(name) for text, name in pairs]
        named = [text for text, name in pairs if name is not None]
        over = ["(SELECT *, ", *method_sql.sql_list(named), " FROM `input`)"] if named else ["`input`"]
        return self.query._of(f"SELECT inline({made.key}(", *method_sql.separated(keys), ")) FROM ", *over)

    def top(self, n: int, *order: str | Column, number: str | None = None, rank: Rank = "row_number") -> Query:
        """The first n tuples of each group in an order, once the group is complete: `top(3, "price DESC", "ts")`.

        Args:
            n: Number of tuples per group.
            order: Attributes to sort by, each perhaps with a direction.
            number: Name of an attribute for the tuple's rank in its group; by default the result has none.
            rank: The SQL function that ranks; `rank` and `dense_rank` keep ties.

        Raises:
            QueryError: `order` is empty.
        """
        if not order:
            raise QueryError("top needs an order", hint=f'for example top({n}, "price DESC")')
        called = number or unique("rank", self.query.schema.names)
        by = [" PARTITION BY ", *method_sql.sql_list(self.keys)] if self.keys else []
        over = [
            *by,
            " ORDER BY ",
            ", ".join(method_sql.sort_key_sql(key) for key in order),
            f") AS {quoted(called)} FROM `input`",
        ]
        items = "*" if number else ", ".join(map(quoted, self.query.schema.names))
        ranked = [f"SELECT {items} FROM (SELECT *, {rank}() OVER (", *over]
        return self.query._of(*ranked, f") WHERE {quoted(called)} <= {n}")


@in_sentences("a window of tuples", ON_WINDOWS)
@dataclass(frozen=True, slots=True)
class TupleWindows:
    """The windows of a number of tuples each, to aggregate."""

    query: Query
    window: TupleWindow

    def agg(self, *aggregates: str | Column, **named: str) -> Query:
        """One tuple for each window, as soon as the window is full: the `per` attributes, then the aggregates.

        Each argument is an expression over aggregates: `agg("avg(v) AS mean", "max(v) - min(v) AS spread")`.

        Raises:
            QueryError: There is no aggregate; or the tuples have no order, for example after a merge or a join.
        """
        aggregates = method_sql.with_names(aggregates, named)
        if not aggregates:
            raise QueryError("nothing to aggregate", hint='for example agg("avg(v) AS mean")')
        text = QueryText.joined(["SELECT ", *method_sql.sql_list(aggregates), " FROM `input`"])
        statement = parse_statements(text)[0]
        require_supported(statement.tree, text)
        relation = Relation.of(self.query.root)
        items = [
            Item(tree.alias or None, resolve(tree.unalias().unnest(), relation, text))
            for tree in statement.tree.expressions
        ]
        analyst = analyst_of(self.query.spark)
        made = over_tuples(self.query.root, self.window, items, analyst, text)
        return Query(self.query.spark, finished(made, analyst, text))


def _require_query(other: object) -> None:
    if not isinstance(other, Query):
        hint = "xs.read(…) makes queries, and xs.from_dataframe(frame, session=session) does of a table or a DataFrame"
        raise QueryError(f"{called(other)} is not a query", hint=hint)


@in_sentences()
def multiway_join(
    on: str | Column, purge: Literal["eager", "lazy"] | None = None, every: int | None = None, **queries: Query
) -> Query:
    """Joins several queries at once: the combinations of their tuples that satisfy a condition.

    Args:
        on: Equalities of attributes that connect all queries, and perhaps further conditions, joined by AND. Queries
            have the names of their arguments: `multiway_join("a.x = b.x AND b.y = c.y", a=…, b=…, c=…)`.
        purge: `eager` purges in every slice, `lazy` in every n-th slice; `eager` by default.
        every: The n of a lazy purge; by default 10.
        queries: The queries by name; rename attributes first that have the same name.

    Raises:
        QueryError: There are fewer than two queries, the equalities do not connect all of them, or a name is ambiguous.
    """
    if len(queries) < 2:
        raise QueryError("a join of fewer than two queries", hint="multiway_join(on, a=…, b=…, c=…)")
    spark = next(iter(queries.values())).spark
    analyst = analyst_of(spark)
    relations: list[Relation] = []
    for name, query in queries.items():
        taken = [other for relation in relations for other in relation.node.schema.names]
        relations.append(with_unique_names(Relation.of(query.root).aliased(name), taken, analyst))
    text = QueryText.joined(["SELECT ", argument(on)])
    tree = parse_statements(text)[0].tree.expressions[0]
    whole = relations[0].beside(*relations[1:])
    nodes = tuple(relation.node for relation in relations)
    equalities, residual = equalities_between(resolve(tree, whole, text), [node.schema for node in nodes])
    strategy = EAGER if purge is None else strategy_named(purge, every)
    join = MultiwayJoin(len(nodes), equalities, residual, strategy).bounded(*(node.schema for node in nodes))
    node = Node(join, nodes, "multiway_join")
    if residual is not None:
        analyst.require_condition(node.schema, residual)
    return Query(spark, finished(Relation(node, whole.fields), analyst, text))
