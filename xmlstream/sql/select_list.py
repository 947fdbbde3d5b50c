"""The list of SELECT: which items its entries stand for, and what GROUP BY and HAVING mean by their names.

GROUP BY takes an attribute's name first, then an alias, or a number for an item; HAVING may use an item's alias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from operators.expressions.dialect import offset, render
from operators.expressions.literals import whole_number
from operators.expressions.references import named
from punct_ns.errors import QueryError
from punct_ns.window_attributes import END, START
from xmlstream.sql.grouping import is_aggregate
from xmlstream.sql.plan_builder import Item
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation, require_no_quoted_name, resolve, window_of


@dataclass(frozen=True, slots=True)
class SelectList:
    """The items of a SELECT over a relation, in order."""

    relation: Relation
    text: QueryText
    items: tuple[Item, ...] = ()

    @staticmethod
    def of(entries: Sequence[exp.Expr], relation: Relation, text: QueryText) -> SelectList:
        """The items that its entries stand for.

        Raises:
            QueryError: A name means nothing, or what another item names.
        """
        listed = SelectList(relation, text)
        for entry in entries:
            listed = replace(listed, items=(*listed.items, *listed._items(entry)))
        return listed

    def keys(self, entries: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
        """What the entries of GROUP BY name, over the relation's attributes.

        Raises:
            QueryError: A name or a number means nothing.
        """
        return tuple(key for entry in entries for key in self._key(entry))

    def having(self, condition: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
        """HAVING over the node's attributes: a name is a key's, else an item's; in an aggregate an attribute's."""
        key_names = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
        within = {name.name.lower() for key in keys for name in key.find_all(exp.Column)} - key_names

        def chosen(node: exp.Expr) -> exp.Expr:
            if is_aggregate(node):
                return self._resolved(node)
            require_no_quoted_name(node, self.relation, self.text)
            if (aliased := self._called(node)) is None:
                return self._resolved(node) if isinstance(node, exp.Column) else node
            found = {field.attribute.lower() for field in self.relation.find(node.name)}
            if found & key_names:
                return self._resolved(node)
            if found & within:
                raise self._error(f"{node.name} may be an item or an attribute", node, "give the item another name")
            return aliased.copy()

        return condition.copy().transform(chosen, copy=False)

    def _items(self, written: exp.Expr) -> list[Item]:
        """What one entry of SELECT stands for: several items where it is a star."""
        star = written.this if isinstance(written, exp.Column) else written
        if isinstance(star, exp.Star):
            return self._all(star, written)
        tree, name = (written.this, written.alias) if isinstance(written, exp.Alias) else (written, None)
        if name is None and isinstance(tree, exp.Column | exp.Dot):
            name = tree.name
        if (window := window_of(tree, self.relation)) is not None:
            ends = zip((START, END), window, strict=True)
            return [Item(f"{name}{end}", named(field.attribute)) for end, field in ends]
        if name is None and isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "window_time":
            name = render(tree).replace("`", "")
        for column in tree.find_all(exp.Column):
            if any(item.name == column.name for item in self.items) and not self.relation.find(column.name):
                hint = "what one item names, another cannot use: compute it in a subquery"
                raise self._error(f"there is no attribute {column.name}", column, hint)
        return [Item(name, self._resolved(tree.unnest()))]

    def _all(self, star: exp.Star, written: exp.Expr) -> list[Item]:
        table = written.table if isinstance(written, exp.Column) else None
        fields = self.relation.fields_of(table or None)
        if table and not fields:
            raise self._error(f"there is no table {table} in FROM", written)
        left_out = set()
        for column in star.args.get("except_") or ():
            if not self.relation.find(column.name, table or None):
                raise self._error(f"there is no attribute {column.name} to leave out", column)
            left_out.add(column.name.lower())
        starred = [field for field in fields if field.starred]
        return [Item(field.name, named(field.attribute)) for field in starred if field.name.lower() not in left_out]

    def _key(self, key: exp.Expr) -> list[exp.Expr]:
        """What GROUP BY names: an item by its number, an attribute, an alias, an expression; of a window its ends."""
        if isinstance(key, exp.Literal) and not key.is_string:
            number, entries = whole_number(key) or 0, _entries(self.items)
            if not 1 <= number <= len(entries):
                raise self._error(f"there is no item {key.this} to group by", key, f"there are {len(entries)}")
            return [item.tree for item in entries[number - 1]]
        if (window := window_of(key, self.relation)) is not None:
            return [named(field.attribute) for field in window]
        if not self.relation.find(key.name):
            if (aliased := self._called(key)) is not None:
                return [aliased]
            ends = {f"{key.name}{end}".lower() for end in (START, END)} if isinstance(key, exp.Column) else set()
            if len(found := [item.tree for item in self.items if (item.name or "").lower() in ends]) == 2:
                return found
        return [self._resolved(key)]

    def _called(self, tree: exp.Expr) -> exp.Expr | None:
        """The item that a bare name is the alias of."""
        if not isinstance(tree, exp.Column) or len(tree.parts) > 1:
            return None
        found = [item.tree for item in self.items if item.name is not None and item.name.lower() == tree.name.lower()]
        return found[0] if len(found) == 1 else None

    def _resolved(self, tree: exp.Expr) -> exp.Expr:
        return resolve(tree, self.relation, self.text)

    def _error(self, what: str, at: exp.Expr, hint: str | None = None) -> QueryError:
        return self.text.error(what, offset(at), hint)


def _entries(items: Sequence[Item]) -> list[list[Item]]:
    """The items as they are numbered: a window's start and end are one."""
    found: list[list[Item]] = []
    for item in items:
        before = found[-1][-1].name if found else None
        if before and item.name and before.endswith(START) and item.name == f"{before.removesuffix(START)}{END}":
            found[-1].append(item)
        else:
            found.append([item])
    return found
