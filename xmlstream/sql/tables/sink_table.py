"""CREATE TABLE of a sink: target and form for the result of an INSERT."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.type_rules import lossless_cast
from xmlstream.operators.storage.object_urls import OPTIONS, is_object_url, with_options
from xmlstream.plan.nodes import Node, projected
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema, flattened
from xmlstream.punct_ns.slices import quoted
from xmlstream.sink.target import PARTITIONED, SINKS, Target
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.tables.declaration import Declaration

_BY = "select the attribute with this name"


@dataclass(frozen=True, slots=True)
class SinkTable:
    """Table to write; a result must fit its `columns`, if declared, by position."""

    name: str
    target: Target
    columns: Schema | None

    @staticmethod
    def of(declaration: Declaration) -> SinkTable:
        """The sink that a declaration means for a table named by an INSERT.

        Raises:
            QueryError: The format is not a sink's, or an option is unknown or missing.
        """
        kind = SINKS.get(declaration.using.lower())
        if kind is None:
            what = f"a sink USING {declaration.using} is not supported"
            raise declaration.error(what, f"the formats of sinks are {', '.join(SINKS)}")
        if declaration.partition_by and kind.form is None:
            raise declaration.error(f"a sink USING {kind.name} is not PARTITIONED", f"a sink USING {PARTITIONED} is")
        known = {option.lower(): option for option in kind.options}
        given: dict[str, str] = {}
        xml: list[str] = []
        for option, value in declaration.options.items():
            if kind.has_elements and option.lower().startswith("path."):
                column = option.partition(".")[2]
                if value.replace(" ", "") != f"xml({column})":
                    hint = f"write 'xml({column})', or leave the option out"
                    raise declaration.error(f"{option} '{value}' is not supported", hint)
                xml.append(column)
            elif option.lower() in known:
                given[option.lower()] = value
            else:
                near = difflib.get_close_matches(option.lower(), known, n=1)
                hint = f"did you mean {known[near[0]]}?" if near else f"it has {', '.join(kind.options)}"
                raise declaration.error(f"a sink has no option {option}", hint)
        if not (output := given.get(kind.options[0])):
            raise declaration.error(f"the option {kind.options[0]} is missing", kind.needed)
        if kind.output is not None:
            output = kind.output(given, declaration.name)
        elif is_object_url(output):
            output = with_options(output, given)
        elif others := [option for option in OPTIONS if option in given]:
            raise declaration.error(f"{others[0]} is an option of an object store", "the path is one: s3://bucket/out")
        tags = given.get("rowtag", "row"), given.get("roottag", "rows")
        try:
            target = Target(output, *tags, kind.name, declaration.partition_by, tuple(xml))
        except UsageError as error:
            raise declaration.error(error.what, error.hint) from None
        columns = flattened(Schema.parse(declaration.columns)) if declaration.columns else None
        return SinkTable(declaration.name, target, columns)

    def fitted(self, node: Node, text: QueryText, at: int, *, typed: bool) -> Node:
        """The result with the sink's columns; `typed` says whether the node's types are known.

        Raises:
            QueryError: The numbers of columns differ, a type is not wider, or a NOT NULL column may get null.
        """
        for name in self.target.partition_by:
            known = node.schema if self.columns is None else self.columns
            if name.lower() not in {attribute.lower() for attribute in known.names}:
                raise text.error(f"{self.name} is partitioned by {name}, which it does not have", at, _BY)
        if self.columns is None:
            return node
        if len(self.columns) != len(node.schema):
            what = f"{self.name} has {len(self.columns)} columns, but the inserted result has {len(node.schema)}"
            raise text.error(what, at, "columns correspond by position")
        made: list[Column] = []
        for wanted, attribute in zip(self.columns, node.schema, strict=True):
            domain = lossless_cast(attribute.domain, wanted.domain.type) if typed else attribute.domain
            if domain is None:
                what = (
                    f"{wanted.name} of {self.name} is {wanted.domain.type}, {attribute.name} is {attribute.domain.type}"
                )
                raise text.error(what, at, f"write CAST({attribute.name} AS {wanted.domain.type})")
            if typed and domain.nullable and not wanted.domain.nullable:
                what = f"{wanted.name} of {self.name} is NOT NULL, {attribute.name} may be null"
                raise text.error(what, at, f"write coalesce({attribute.name}, …), or declare it without NOT NULL")
            is_same = domain.type == attribute.domain.type
            expression = quoted(attribute.name) if is_same else f"CAST({quoted(attribute.name)} AS {domain.type})"
            made.append(Column(Attribute(wanted.name, domain), expression, attribute.name))
        return projected(node, made)
