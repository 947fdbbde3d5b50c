"""The builder: a query built operator by operator, with the names that PySpark has for them.

Every argument is Spark SQL. A `Query` never changes; each method returns a new one. A method does what the same SQL
does: `q.select("a").where("a > 1")` has the plan of `SELECT a FROM q`, then `SELECT * FROM … WHERE a > 1`.

`multiway_join` joins many queries at once: a tuple that no pair of them could purge may be purged by a chain of their
punctuations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from operators.describe import Describe
from operators.joins.purge_strategy import EAGER, asked
from operators.multiway_join import MultiwayJoin
from operators.punctuate import Punctuate, Ungrammatical
from operators.punctuators.rule import Rule
from operators.secret_window import SecretWindow
from operators.sort import Sort
from punct_ns.errors import QueryError
from punct_ns.slices import quoted
from xmlstream.builder.method_sql import (
    ON_QUERIES,
    Groups,
    TupleWindows,
    argument,
    joined,
    joined_asof,
    lengths_of,
    listed,
    no_such_name,
    renamed,
    sort_key,
    text_literal,
    with_column,
    without,
)
from xmlstream.builder.runnable import Runnable
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import tree
from xmlstream.safety.explanation import Format, explained
from xmlstream.secret.profile import Windows
from xmlstream.sql import translation
from xmlstream.sql.clauses.joining import equalities_between, with_unique_names
from xmlstream.sql.clauses.plan_builder import difference, distinct, finished, first, intersect, merge, ordered
from xmlstream.sql.clauses.relation import Relation, resolve
from xmlstream.sql.clauses.row_windows import TupleWindow
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import SparkAnalyst
from xmlstream.sql.statements import parse_statements
from xmlstream.sql.tables.stream_options import in_windows


@dataclass(frozen=True, slots=True, repr=False)
class Query(Runnable):
    """A query over punctuated streams, and the Spark session it will run in; made by `read` and `from_sql`."""

    @property
    def columns(self) -> list[str]:
        """The names of its result's attributes."""
        return list(self.schema.names)

    def __repr__(self) -> str:
        return f"Query[{', '.join(f'{a.name}: {a.domain.type}' for a in self.schema)}]"

    def __getattr__(self, name: str) -> Any:
        known = () if name.startswith("_") or name in Query.__slots__ + Runnable.__slots__ else self.columns
        if name.lower() in (attribute.lower() for attribute in known):
            raise AttributeError(_no_column(name))
        raise AttributeError(no_such_name(name, "a query", ON_QUERIES, Query))

    def __getitem__(self, name: object) -> Any:
        raise TypeError(_no_column(name))

    def explain(
        self, *, as_written: bool = False, format: Format | Literal["plan"] = "plan", follow: bool = False
    ) -> str:
        """The plan, a node a line, its inputs below it; or what is known of it before it runs.

        Args:
            as_written: The plan as the query says; else as it will run.
            format: The `plan` alone; or with what each operator promises, when it answers and what it keeps until when,
                as `text`, `json`, `svg` or `html`.
            follow: Whether its sources are waited for, as `start` does, so that nobody knows of an end of theirs.
        """
        root = self.root if as_written else self.plan
        return tree(root) if format == "plan" else explained(root, follow=follow, format_=format)

    def _repr_html_(self) -> str:
        """The plan with its verdicts, drawn, as a notebook shows it."""
        return explained(self.plan, format_="svg")

    def select(self, *items: str) -> Query:
        """These expressions of each tuple, as in SQL's SELECT: `select("hour", "currtmp * 2 AS twice", "*")`."""
        return self._of("SELECT ", *listed(items), " FROM `input`")

    def where(self, condition: str) -> Query:
        """The tuples for which the condition is true."""
        return self._of("SELECT * FROM `input` WHERE ", argument(condition))

    filter = where
    selectExpr = select  # noqa: N815 - as PySpark spells it

    def with_column(self, name: str, expression: str) -> Query:
        """All attributes, and one more that is computed; it replaces one of the same name."""
        return self._of("SELECT ", *with_column(self.schema, name, expression), " FROM `input`")

    withColumn = with_column  # noqa: N815 - as PySpark spells it

    def with_column_renamed(self, old: str, new: str) -> Query:
        """All attributes, one of them under another name."""
        return self._of("SELECT ", renamed(self.schema, old, new), " FROM `input`")

    withColumnRenamed = with_column_renamed  # noqa: N815 - as PySpark spells it

    def drop(self, *names: str) -> Query:
        """All attributes but these."""
        return self._of("SELECT ", without(self.schema, names), " FROM `input`")

    def explode(self, array: str, element: str, *, outer: bool = False) -> Query:
        """A tuple of each element of an array, as SQL's LATERAL VIEW explode: `explode("tags", "tag")`.

        Args:
            array: An attribute, or an expression, that is an array.
            element: The name of its element, which stands behind all other attributes.
            outer: Whether a tuple whose array is empty or null stays, with null for the element.
        """
        view = f"LATERAL VIEW{' OUTER' if outer else ''} explode("
        return self._of(f"SELECT * FROM `input` {view}", argument(array), f") exploded AS {quoted(element)}")

    def window(self, moment: str, size: str, slide: str | None = None, start: str | None = None) -> Query:
        """All attributes, and the window in time of a moment, by which to group: `window("ts", "10 minutes")`.

        A tuple is there once for each window that it is in; of a moment that is null there is none.

        Args:
            moment: An attribute, or an expression, that is a TIMESTAMP.
            size: How long a window lasts, as SQL's `window` has it, such as "1 hour 30 minutes".
            slide: After how long the next window begins; the size, if it is not given.
            start: By how much windows begin later than at full slides.
        """
        lengths = ", ".join(text_literal(length) for length in lengths_of(size, slide, start))
        return self._of("SELECT *, window(", argument(moment), f"\n, {lengths}) AS window FROM `input`")

    def distinct(self) -> Query:
        """Each different tuple once."""
        return self._of("SELECT DISTINCT * FROM `input`")

    def union(self, other: Query) -> Query:
        """Each different tuple of both once, by position, as SQL's UNION; `union_all` keeps all tuples.

        Differs: PySpark's `union` is SQL's UNION ALL.
        """
        return self._merged(other, label="union")

    def union_all(self, other: Query) -> Query:
        """All tuples of both, by position."""
        return self._merged(other, label=None)

    unionAll = union_all  # noqa: N815 - as PySpark spells it

    def intersect(self, other: Query) -> Query:
        """Each different tuple that both have, once, by position."""
        return Query(self.spark, intersect(*self._beside(other), SparkAnalyst(self.spark)).node)

    def subtract(self, other: Query) -> Query:
        """Each different tuple that the other does not have, once, by position, as SQL's EXCEPT."""
        return Query(self.spark, difference(*self._beside(other), SparkAnalyst(self.spark)).node)

    def join(
        self, other: Query, on: str | Sequence[str], how: str = "inner", *, left: str = "left", right: str = "right"
    ) -> Query:
        """The pairs of tuples of both that agree.

        Args:
            other: What is joined with this query.
            on: A condition with an equality between the sides, such as `"left.id = right.auction"`; or one name or
                several that both have, whose attributes are then equal and stand once, in front.
            how: `inner`, `left`, `right`, `full`, `semi` or `anti`, or as PySpark calls them, such as `left_outer`.
            left: What the condition calls this query.
            right: What the condition calls the other one.

        Raises:
            QueryError: There is no equality, or the result would have two attributes of one name.
        """
        return self._of("SELECT * FROM ", *joined(on, how, left, right), other=other)

    def join_asof(
        self,
        other: Query,
        on: str,
        by: str | Sequence[str],
        how: str = "inner",
        *,
        tolerance: str | int | None = None,
        left: str = "left",
        right: str = "right",
    ) -> Query:
        """Each tuple with the last one of the other query that is not later, of its key, as SQL's ASOF JOIN.

        It comes as soon as punctuations of the other query tell that no later partner can.

        Args:
            other: Where the last tuple is looked for.
            on: What is compared: an attribute that both have, of which the other one's is called `right_<name>`; or
                a comparison by `>=` or `>`, such as `"left.dateTime > right.since"`.
            by: The keys: attributes that both have, which stand once, in front.
            how: `inner`, or `left` for tuples without partner, too.
            tolerance: How much older a partner may be at the most, as Spark SQL: `5`, `"INTERVAL 1 HOUR"`. What is too
                old for all tuples to come is forgotten, also the last tuple of a key. By default any age will do.
            left: What the comparison calls this query.
            right: What the comparison calls the other one, and how its `on` is called.

        Raises:
            QueryError: It is no such comparison or kind, or the result would have two attributes of one name.
        """
        keys = [by] if isinstance(by, str) else list(by)
        return self._of(*joined_asof(self.schema, other.schema, on, keys, how, left, right, tolerance), other=other)

    def order_by(self, *keys: str) -> Query:
        """The tuples in order, each as soon as punctuations tell that none comes before it: `order_by("hour DESC")`."""
        return self._of("SELECT * FROM `input` ORDER BY ", ", ".join(sort_key(key) for key in keys))

    orderBy = sort = order_by  # noqa: N815 - as PySpark spells it

    def limit(self, n: int) -> Query:
        """The first n tuples of a query with an order, in order, once the input is closed: `order_by("t").limit(10)`.

        Raises:
            QueryError: There is no order to be first in.
        """
        if not isinstance(self.root.operator, Sort):
            raise QueryError("limit without an order", hint=f'order_by("…").limit({n}) says which tuples come first')
        keys = self.root.operator.keys
        return Query(self.spark, ordered(first(Relation.of(self.root.inputs[0]), n, keys).node, keys))

    def describe_punctuations(self, *attributes: str, watch: Sequence[str] = (), patterns: Sequence[str] = ()) -> Query:
        """All tuples, and only such punctuations as describe these attributes.

        Args:
            attributes: What punctuations are to speak of.
            watch: Attributes from whose punctuations new ones are built up, once they cover them.
            patterns: What must be covered of each, as a check; it must be all that there can be.

        Differs: PySpark's `describe` computes statistics.
        """
        operator = Describe(attributes, tuple(watch), tuple(patterns))
        return Query(self.spark, Node(operator, (self.root,), "describe"))

    def punctuate(self, rule: Rule, ungrammatical: Ungrammatical = "fail") -> Query:
        """All tuples, and what a rule knows about those to come; directly on a source.

        Args:
            rule: For example `ByOrder("ts")`; see `operators.punctuate`.
            ungrammatical: What is done with a tuple that comes although the rule excluded it.
        """
        return Query(self.spark, Node(Punctuate(rule, ungrammatical), (self.root,), "punctuate"))

    def group_by(self, *keys: str) -> Groups:
        """The groups of tuples that agree in these expressions; one group of all tuples without any."""
        return Groups(self, keys)

    groupBy = groupby = group_by  # noqa: N815 - as PySpark spells it

    def tuple_window(self, size: int, slide: int | None = None, per: str | Sequence[str] = ()) -> TupleWindows:
        """Windows of so many tuples, in the order in which they come: `tuple_window(10, 5, per="sid").agg("avg(v)")`.

        Args:
            size: How many tuples are in a window.
            slide: After how many tuples the next window is complete; the size, if it is not given.
            per: Attributes for each of whose values tuples are counted by themselves.
        """
        names = (per,) if isinstance(per, str) else tuple(per)
        return TupleWindows(self, TupleWindow(size, size if slide is None else slide, names))

    def window_as(
        self, engine: str, time: str, size: int, slide: int, *, batch: str | None = None, of_tuples: bool = False
    ) -> Groups:
        """The windows that another engine would report of this stream, to be aggregated (Botan et al. 2010).

        Args:
            engine: `stream`, `coral8`, `streambase`, or `xmlstream` itself.
            time: The attribute with the time, a whole number that is never null; tuples come in its order.
            size: How long a window is.
            slide: How far apart windows are.
            batch: The attribute with the number of the batch, for engines that react to batches.
            of_tuples: Whether size and slide are numbers of tuples.

        Raises:
            QueryError: The tuples have no order, as above a merge or a join.
        """
        node = in_windows(self.root, engine, Windows(size, slide, of_tuples=of_tuples), time, batch)
        assert isinstance(node.operator, SecretWindow)
        return Groups(Query(self.spark, node), tuple(map(quoted, node.operator.reported)))

    def _of(self, *parts: str | QueryText, **others: Query) -> Query:
        """The query that this text is, over this one under the name `input`, and others under theirs."""
        statement = parse_statements(QueryText.joined(parts))[0]
        tables = {"input": Relation.of(self.root), **{name: Relation.of(query.root) for name, query in others.items()}}
        translation.sketched(statement, tables)
        return Query(self.spark, translation.planned(statement, tables, SparkAnalyst(self.spark)))

    def _beside(self, other: Query) -> tuple[Relation, Relation]:
        """Both, as they are taken together by position."""
        here, there = len(self.schema), len(other.schema)
        if here != there:
            raise QueryError(f"{here} attributes beside {there}", hint="select as many on both sides")
        return Relation.of(self.root), Relation.of(other.root)

    def _merged(self, other: Query, *, label: str | None) -> Query:
        analyst = SparkAnalyst(self.spark)
        merged = merge(self._beside(other), analyst)
        return Query(self.spark, (merged if label is None else distinct(merged, analyst, label)).node)


def _no_column(name: object) -> str:
    """What to say of an attribute that is asked for as a column of PySpark's."""
    text = name if isinstance(name, str) else "hour"
    return f'expressions are text here; Hint: write "{text}" as SQL does, as in select("{text}"), where("{text} = 3")'


def multiway_join(
    on: str, purge: Literal["eager", "lazy"] | None = None, every: int | None = None, **queries: Query
) -> Query:
    """The combinations of tuples of several queries that satisfy a condition.

    Args:
        on: Equalities of attributes that connect all queries, and perhaps further conditions, joined by AND; the
            queries go by the names of their arguments: `multiway_join("a.x = b.x AND b.y = c.y", a=…, b=…, c=…)`.
        purge: Whether kept tuples are looked through in every slice, or only now and then; None for what costs less, as
            far as a former run with the checkpoint has measured it.
        every: After how many slices a lazy purge comes again; 10 unless said.
        queries: The queries, by name; their attributes must differ in name, or be renamed before.

    Raises:
        QueryError: There are fewer than two queries, the equalities do not connect them, or names are not clear.
    """
    if len(queries) < 2:
        raise QueryError("a join of fewer than two queries", hint="multiway_join(on, a=…, b=…, c=…)")
    spark = next(iter(queries.values())).spark
    analyst = SparkAnalyst(spark)
    relations: list[Relation] = []
    for name, query in queries.items():
        taken = [other for relation in relations for other in relation.node.schema.names]
        relations.append(with_unique_names(Relation.of(query.root, name), taken, analyst))
    text = QueryText.joined(["SELECT ", argument(on)])
    tree = parse_statements(text)[0].tree.expressions[0]
    whole = Relation(relations[0].node, tuple(field for relation in relations for field in relation.fields))
    nodes = tuple(relation.node for relation in relations)
    equalities, residual = equalities_between(resolve(tree, whole, text), [node.schema for node in nodes])
    strategy = EAGER if purge is None else asked(purge, every)
    join = MultiwayJoin(len(nodes), equalities, residual, strategy).bounded(*(node.schema for node in nodes))
    node = Node(join, nodes, "multiway_join")
    if residual is not None:
        analyst.require_condition(node.schema, residual)
    return Query(spark, finished(Relation(node, whole.fields), analyst, text, None))
