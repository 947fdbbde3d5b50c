"""Proposal of how to declare a source: its tuples' elements, columns and paths, and guesses of its promises.

Guesses are keys, orders and schemes that hold for a sample of the source.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from math import ceil
from pathlib import Path, PurePath

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.object_urls import shown
from xmlstream.punct_ns.errors import InputError, UsageError, counted, few, in_units
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.xml_form import NO_NAME_LETTER, PUNCT_NS
from xmlstream.sources.local_paths import common_glob
from xmlstream.sources.places import Document, is_glob, located
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.inference.element_profile import (
    MOST_PLACES,
    MOST_TEXTS,
    ORDERED,
    ElementProfile,
    Sample,
    sampled,
)
from xmlstream.sources.xml.inference.inferred_columns import (
    MOST_COLUMNS,
    InferredColumn,
    InferredLeaf,
    RowCandidate,
    candidates,
    candidates_named,
    columns,
    inferred_leaves,
    outside,
    passed_over,
    prefixes_for,
)
from xmlstream.sources.xml.inference.observed_order import ObservedOrder
from xmlstream.sources.xml.inference.schema_profile import DeclaredValues, SchemaProfile, schema_profile
from xmlstream.sources.xml.options.leaf_paths import default_path, local_tag
from xmlstream.sources.xml.options.option_table import by_proper_names
from xmlstream.sources.xml.options.qualified_names import CHILDREN, namespace_prefixes, with_namespace
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents, opener_of

_FEW = 3
"""The number of rows below which nothing is guessed."""

_MOST_OTHERS = 12
"""The number of other elements that the statement names."""

_WIDTH = 120
"""The greatest length of a line of comments that are lists."""

_LONG = 64
"""The average number of characters above which texts are hardly keys."""


@dataclass(frozen=True, slots=True)
class Guess:
    """One option that may hold, and the observation that suggests it."""

    option: str
    value: str
    why: str

    @property
    def lines(self) -> str:
        """Comments in a statement; without its dashes, the last one is the option."""
        return f"  -- {self.why}:\n  -- {self.option} {_text(self.value)},"


def guesses(
    found: Sequence[InferredColumn], rows: int, schemes: Sequence[str], *, is_single: bool
) -> tuple[Guess, ...]:
    """Returns the options that hold for a sample, of so many rows, with these columns and schemes of punctuations.

    Some hold only if the sample is from a single document.
    """
    guessed = []
    if schemes:
        why = _GUESS.format("the punctuations in the sample have these schemes")
        guessed.append(Guess("schemes", "; ".join(schemes), why))
    if rows < _FEW:
        return tuple(guessed)
    whole = [column for column in found if column.is_whole(rows)]
    key = _likely_key(whole) if is_single else None
    order = () if schemes else _likely_order(whole)
    return tuple(filter(None, (*guessed, key, *order)))


_GUESS = "a guess, true for the inspected part ({})"


def _likely_key(whole: Sequence[InferredColumn]) -> Guess | None:
    """The unique identifier among columns without nulls: by its name, else the first."""
    unique = [column for column in whole if column.leaf.type in _KEY_TYPES and column.leaf.values.are_unique]
    unique = [column for column in unique if column.leaf.values.length <= _LONG * column.leaf.values.count]
    if not unique:
        return None
    likely = min(unique, key=lambda column: not column.name.lower().endswith(_KEYS))
    others = ", ".join(column.name for column in unique if column is not likely)
    too = f", nor one of {others}" if others else ""
    return Guess("uniqueIds", quoted_if(likely.name), _GUESS.format(f"a likely key: no value occurs twice{too}"))


def _likely_order(whole: Sequence[InferredColumn]) -> tuple[Guess, ...]:
    """The order of a column without nulls, one without slack first."""
    orders = [(o, c.name) for kind in ORDERED for c in whole if c.leaf.type == kind and (o := c.leaf.values.order)]
    if not orders:
        return ()
    ordered = sorted(orders, key=lambda each: (bool(each[0].early), bool(each[0].late), bool(each[0].slack)))
    (order, first), *rest = ordered
    others = ", ".join(name for alike, name in rest if (alike.slack, alike.late, alike.early) == (order.slack, (), ()))
    too = f"; so do {others}" if others and not (order.late or order.early) else ""
    slack = None if order.slack is None else ceil(order.slack / _SECOND)
    rule, how = f"order of {quoted_if(first)}", "never fall"
    if slack is not None:
        rule, how = f"{rule}, slack {slack}s", f"fall by at most {slack} s"
    if order.early and (ahead := _ahead(order)) is None:
        return ()
    if order.early:
        rule = f"{rule}, max_ahead {ahead}"
        how = f"{how}; {_outliers(order.early)} ahead, which max_ahead sets aside (with Spark)"
    if not order.late:
        found = Guess("punctuate", rule, _GUESS.format(f"its values {how}{too}"))
        return (
            (found, Guess("ungrammatical", "divert", "what is ahead goes to the dead letters"))
            if order.early
            else (found,)
        )
    how = f"{how}, but for {_outliers(order.late)} late"
    to_letters = Guess(
        "ungrammatical", "divert", "with the order: what is later than its slack goes to the dead letters"
    )
    return Guess("punctuate", rule, _GUESS.format(f"its values {how}")), to_letters


_SECOND = timedelta(seconds=1)


def _outliers(distances: Sequence[timedelta]) -> str:
    return f"{len(distances):,} {'by' if len(distances) == 1 else 'by up to'} {in_units(max(distances))}"


def _ahead(order: ObservedOrder) -> str | None:
    """A distance between what is ahead and what rises in its time; None if there is none."""
    hours = ceil(2 * order.gap / timedelta(hours=1))
    return f"{hours}h" if timedelta(hours=hours) < order.early[0] else None


def _local_times(found: Sequence[InferredColumn]) -> tuple[Guess, ...]:
    """The zone to name where times have none."""
    local = [name for column in found for name, values in column.seen if values.are_local]
    if not local:
        return ()
    named = ", ".join(local[:4]) + (", …" if len(local) > 4 else "")
    why = f"times of {named} have no zone: they are in the session's, by default UTC; if in another, name it"
    return (Guess("timeZone", "Europe/Berlin", why),)


def quoted_if(name: str) -> str:
    """Returns the name for schemes and rules, in back quotes if it needs them."""
    return name if name.isidentifier() and name.isascii() else quoted(name)


_KEYWORDS = """
all alter and any as between case create cross cube describe distinct drop else except fetch for
from function glob grant having ilike inner insert intersect into join lateral like limit lock minus
not notnull null offset on or outer partitioned_by qualify regexp returning revoke rlike rollback
rollup select serdeproperties tablesample then uncache union using values when where with xor
"""
"""Words that stand for themselves only in back quotes."""


def _in_sql(name: str) -> str:
    """Returns the name for statements, in back quotes if it needs them.

    >>> [_in_sql(name) for name in ("hour", "a b", "when", "Select")]
    ['hour', '`a b`', '`when`', '`Select`']
    """
    return quoted(name) if name.lower() in _KEYWORDS.split() else quoted_if(name)


_KEY_TYPES = ("STRING", "BIGINT")
"""The inferred types of keys."""

_KEYS = ("id", "key", "guid", "uuid", "number", "ref", "code")
"""Frequent endings of keys' names."""


SAMPLE_BYTES = 4 << 20
"""The number of bytes in a sample."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The declaration of a source that its documents suggest.

    Attributes:
        options: As in CREATE TABLE, without the columns.
        columns: The same columns, one by one.
        is_whole: Whether the sample is the whole source.
        others: Names of other repeated elements, those with most of the document first.
        left_out: The paths of what no column has.
        outside: The paths of what is around the rows and in no column.
        guesses: The options that hold for the sample.
        remarks: What the statement says first; by default how much was read.
    """

    options: Mapping[str, str]
    schema: str
    columns: tuple[InferredColumn, ...]
    rows: int
    is_whole: bool
    others: tuple[str, ...]
    left_out: tuple[str, ...]
    guesses: tuple[Guess, ...]
    remarks: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """How much was read."""
        rows = f"{self.rows:,} element{'' if self.rows == 1 else 's'}"
        part = "in all" if self.is_whole else "at its beginning, where inference stopped"
        return f"Inferred from {' '.join(self.options['path'].split())}: {rows} {self.options['rowTag']} {part}."

    def create_table(self) -> str:
        """CREATE TABLE, ready to run: guesses are comments; remove the dashes before a guess to include it."""
        remarks = self.remarks or (self.heading,)
        lines = [f"-- {' '.join(remark.split())}" for remark in remarks]
        if self.others:
            more = ", …" if len(self.others) > _MOST_OTHERS else ""
            lines.append(f"-- Other elements that repeat, for --row-tag: {', '.join(self.others[:_MOST_OTHERS])}{more}")
        if self.left_out:
            lines += _comment(
                f"No column has {', '.join(self.left_out)}; a STRING with the path 'xml(.)' has all of a row."
            )
        if self.outside:
            shown, more = self.outside[:_MOST_OTHERS], ", …" if len(self.outside) > _MOST_OTHERS else ""
            unit = "" if all(path.rpartition("../")[2].startswith("@") for path in shown) else " with unitTag"
            lines += _comment(
                f"Around the rows, in no column: {', '.join(shown)}{more}; path.NAME '{shown[0]}'{unit} makes a column."
            )
        name = re.sub(rf"[{NO_NAME_LETTER}\-.]", "_", local_tag(self.options["rowTag"]).rpartition(":")[2])
        lines.append(f"CREATE TABLE {_in_sql(name)} (")
        ends = [*[","] * (len(self.columns) - 1), ""]
        remarks = tuple(f"  -- {' '.join(column.remark.split())}" if column.remark else "" for column in self.columns)
        lines += [f"  {c.ddl}{end}{remark}" for c, end, remark in zip(self.columns, ends, remarks, strict=True)]
        lines += [") USING punctuated_xml OPTIONS (", *(guess.lines for guess in self.guesses)]
        options = [f"  {_option(option)} {_text(value)}" for option, value in self.options.items()]
        return "\n".join([*lines, ",\n".join(options), ");"])


def _comment(text: str) -> list[str]:
    """The text as lines of a comment."""
    wrapper = textwrap.TextWrapper(_WIDTH - 3, break_long_words=False, break_on_hyphens=False)
    return [f"-- {line}" for line in wrapper.wrap(text)]


def _option(name: str) -> str:
    group, dot, column = name.partition(".")
    return f"{group}{dot}{'.'.join(map(_in_sql, column.split('.')))}" if dot else name


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def proposal(
    path: str | Sequence[str],
    row_tag: str | None = None,
    given: Mapping[str, str] | None = None,
    *,
    size: int = SAMPLE_BYTES,
) -> Proposal:
    """Infers the declaration of a source from the beginning of its documents.

    Args:
        path: A file, a directory or a glob, or several of them.
        row_tag: The name of the tuples' elements; None for the repeated elements with most of the document.
        given: Other options, which are kept.
        size: The number of bytes to read.

    Raises:
        InputError: There is nothing at the path, it is not well-formed, or has no such element.
        UsageError: An option is invalid.
    """
    besides = {name: value for name, value in (given or {}).items() if name.lower() != "path"}
    wanted = None
    if not isinstance(path, str):
        if len(path) > 1 and any("://" in each for each in path):
            hint = "name their folder, or a glob: s3://bucket/in/*.xml"
            raise UsageError("several URLs have no path in common", hint=hint)
        each_of = [SourceOptions.parse({**besides, "path": each, "rowTag": "row"}, "x STRING") for each in path]
        wanted = [document.where for each in each_of for document in _documents(each, each.path)]
        path = common_glob(wanted) if len(path) > 1 else path[0]
    options = by_proper_names(located({**besides, "path": path}), "user")
    base = SourceOptions.parse({**options, "rowTag": "row"}, "x STRING")
    found_there = _documents(base, path)
    documents = [one for one in found_there if wanted is None or one.where in wanted]
    sample = sampled(documents, size, base.encoding, skips=base.bad_documents == "skip")
    row, others = _row(sample, row_tag, base, path)
    found = _declared(sample, row, options)
    whole = SourceOptions.parse(found.options, found.schema)
    more = [one.where for one in found_there if one not in documents]
    lax = whole.replace(mode="DROPMALFORMED", ungrammatical="drop")
    promised = check_grammar(lax) if sample.is_whole and not more else None
    schemes = tuple(filter(None, promised.findings.said)) if promised and promised.violation is None else ()
    tags = tuple(_tag(other, sample, {}) for other in others)
    guessed = guesses(found.columns, row.profile.count, schemes, is_single=len(documents) == 1)
    zone = () if "timeZone" in options else _local_times(found.columns)
    grow = () if "documents" in options else _side_by_side(documents)
    found = replace(found, others=tags, guesses=(*guessed, *zone, *grow))
    if not more:
        return found
    where = f"The path leads to {counted(len(more), 'other document')}, too: {few(more)}"
    return replace(found, remarks=(found.heading, where))


def _documents(base: SourceOptions, path: str) -> Sequence[Document]:
    there = Documents(base.replace(documents=None), log=False)
    documents = there.find()
    there.warn_of_passed()
    if not documents:
        raise InputError(f"there is no document at {shown(path)}")
    return documents


_LOOKED_AT, _ENDS = 16, 1 << 12
"""The documents, and the bytes at both ends of each, by which those that still grow are told."""


def _side_by_side(documents: Sequence[Document]) -> tuple[Guess, ...]:
    """That documents are streams of their own, if several of the first have no end yet."""
    growing = [document for document in documents[:_LOOKED_AT] if _is_unfinished(document)]
    if len(growing) < 2:
        return ()
    are = f"{len(growing)} of the first {min(len(documents), _LOOKED_AT)} documents have no end"
    return (Guess("documents", "files", f"a guess: {are}; so each is a stream; infer of one tells its order"),)


def _is_unfinished(document: Document) -> bool:
    """Whether the last end tag of a document is not that of its root; False if that is not known."""
    try:
        with document.reader() as file:
            begin = file.read(_ENDS)
            file.seek(max(0, document.status().size - _ENDS))
            end = file.read()
    except OSError:
        return False
    root = re.search(rb"<([^\s<>!?/]+)", re.sub(rb"<!--.*?-->", b"", begin, flags=re.DOTALL))
    last = re.findall(rb"</([^\s<>]+)\s*>", end)
    return root is not None and opener_of(begin) is None and (not last or last[-1] != root[1])


def declared_proposal(
    schema: str, path: str | None = None, row_tag: str | None = None, given: Mapping[str, str] | None = None
) -> Proposal:
    """Returns the declaration of a source whose documents an XML Schema declares; reads none of them.

    Args:
        schema: The file with the schema.
        path: The path of the documents; None for a file of the schema's name.
        row_tag: The name of the tuples' elements; None for the repeated elements with most of a document.
        given: Other options, which are kept.

    Raises:
        InputError: The schema declares no such element.
        UsageError: The schema cannot be read, or an option is invalid.
    """
    found = schema_profile(schema)
    there = path or f"{PurePath(schema).stem}.xml"
    options = by_proper_names(located({**(given or {}), "path": there}), "user")
    base = SourceOptions.parse({**options, "rowTag": "row"}, "x STRING")
    row, others = _row(found, row_tag, base, schema)
    for around in row.around:
        for root in around[:1]:
            root.count = 1  # in a document; the elements beside the rows are in no column, which would need all of it
    made = _declared(found, row, options)
    all_ = tuple(_with_facets(column, row.profile) for column in made.columns)
    inside = {one.local for one in row.profile.below()} | {one.local for each in row.around for one in each} | {""}
    remarks = [text for local, texts in found.remarks.items() if local in inside for text in texts]
    unique, more = _identified(found, row, all_)
    if unique and (is_glob(there) or Path(there).is_dir()):
        more.append(f"in one document, {', '.join(unique)} has each value once (xs:key, xs:unique): see uniqueIds")
        unique = []
    bounds = ", ".join(f"{quoted_if(column.name)} {bound}" for column in all_ if (bound := _domain(column)))
    said = {**({"uniqueIds": ", ".join(unique)} if unique else {}), **({"domains": bounds} if bounds else {})}
    tag = made.options["rowTag"]
    heading = f"Declared by {' '.join(schema.split())}: its element {tag}."
    check = Guess("validate", schema, "checks each item by the schema, also what no column says; reads more slowly")
    schema_ = ", ".join(column.ddl for column in all_)
    SourceOptions.parse({**made.options, **said}, schema_)
    return replace(
        made,
        options={**made.options, **said},
        schema=schema_,
        columns=all_,
        others=tuple(_tag(other, found, {}) for other in others),
        guesses=(check,),
        remarks=(heading, *remarks, *more),
    )


def _domain(column: InferredColumn) -> str:
    """Returns the bounds of a column that its type can have; empty for none."""
    values = column.leaf.values
    if not isinstance(values, DeclaredValues) or column.leaf.type != values.type:
        return ""
    try:
        Schema.parse(column.ddl).bounded(f"{quoted(column.name)} {values.domain}" if values.domain else "")
    except UsageError:
        return ""
    return values.domain


def _with_facets(column: InferredColumn, row: ElementProfile) -> InferredColumn:
    """Returns the column with what the schema says of its values."""
    leaf, profile = column.leaf, row
    for step in leaf.steps if not leaf.up else ():
        profile = next(
            one for one in profile.children.values() if one.local == step.rpartition(":")[2].rpartition("}")[2]
        )
    places = (
        {"": leaf.values}
        if not leaf.structure
        else {
            name: values
            for each in profile.below()
            for name, values in ((each.local, each.values), *((local_tag(n), v) for n, v in each.attributes.items()))
        }
    )
    said = [
        f"{name}: {text}" if name else text
        for name, values in places.items()
        if isinstance(values, DeclaredValues)
        for text in (*values.remarks, *([values.domain] if values.domain and not _domain(column) else []))
    ]
    return replace(column, is_required=column.is_whole(row.count), remark="; ".join(said))


def _identified(found: SchemaProfile, row: RowCandidate, all_: Sequence[InferredColumn]) -> tuple[list[str], list[str]]:
    """Returns the columns whose values a schema makes unique in a document, and remarks on other constraints."""
    unique, remarks = list[str](), list[str]()
    by_path = {"/".join(step.rpartition(":")[2] for step in c.leaf.path.split("/")): c for c in all_ if not c.leaf.up}
    for each in found.identities:
        if row.profile.local not in each.rows:
            continue
        columns_ = [by_path.get(path) for path in each.fields]
        names = ", ".join(quoted_if(one.name) if one else path for one, path in zip(columns_, each.fields, strict=True))
        tags = [one.tag for one in row.around[0]]
        is_once = len(row.around) == 1 and each.scope in tags
        is_once &= all(one.most == 1 for one in row.around[0][: tags.index(each.scope) + 1 if is_once else 0])
        if each.kind == "keyref":
            key = next((one for one in found.identities if one.name == each.refer and one.kind != "keyref"), None)
            of = f"of {'|'.join(key.rows)} at {', '.join(key.fields)}" if key else f"of {each.refer}"
            remarks.append(f"{each.name} (xs:keyref): {names} is the key {of}, which is there exactly once")
        elif is_once and len(columns_) == 1 and columns_[0] is not None and not columns_[0].leaf.is_repeated:
            unique += [names] if names not in unique else []
        else:
            inside = "" if is_once else f", but only within one {local_tag(each.scope)}"
            remarks.append(f"{each.name} (xs:{each.kind}): {names} is unique{inside}; uniqueIds takes single columns")
    return unique, remarks


def _row(
    sample: Sample, row_tag: str | None, base: SourceOptions, path: str
) -> tuple[RowCandidate, list[RowCandidate]]:
    """Returns the rows, and the other candidates."""
    root, namespace = sample.root, base.punctuation_namespace
    found = candidates(root, namespace)
    if row_tag is None:
        if not found:
            raise InputError(f"{path} has no element")
        return found[0], found[1:]
    if "|" in row_tag.rpartition("}")[2] or row_tag.endswith(CHILDREN):
        hint = "infer each alone, and declare a table with the columns of both"
        raise UsageError(f"columns are inferred for one row tag, not for {row_tag}", hint=hint)
    prefixes = namespace_prefixes("namespaces", dict(base.given).get("namespaces", ""))
    name = with_namespace(row_tag, prefixes, of=f"rowTag {row_tag}")
    meant = [one for one in candidates_named(root, name) if not one.profile.tag.startswith(f"{{{namespace}}}")]
    if len(meant) == 1:
        return meant[0], [one for one in found if one.profile.tag != meant[0].profile.tag]
    if meant:
        named = [one.profile.tag if "}" in one.profile.tag else f"{{}}{one.profile.tag}" for one in meant]
        tags = " or ".join(f"--row-tag '{tag}'" for tag in named)
        raise UsageError(f"{row_tag} is an element of {len(meant)} namespaces in {path}", hint=f"use {tags}")
    there = ", ".join(dict.fromkeys(one.profile.local for one in found[:8]))
    raise InputError(f"no element of {path} is a {row_tag}", hint=f"repeated elements are {there}" if there else None)


def _declared(sample: Sample, row: RowCandidate, given: Mapping[str, str]) -> Proposal:
    prefixes = {
        **prefixes_for(sample.prefixes),
        **{uri: prefix for prefix, uri in namespace_prefixes("namespaces", given.get("namespaces", "")).items()},
    }
    marks = given.get("attributePrefix", "_"), given.get("valueTag", "_VALUE")
    locale = _located(row, given.get("locale"))
    all_, unit = inferred_leaves(row, prefixes, marks)
    if unit is not None and given.get("unitTag", unit) != unit:
        all_, unit = [leaf for leaf in all_ if not (leaf.up and leaf.steps)], None
    chosen = tuple(columns(all_[:MOST_COLUMNS]))
    paths, formats = _paths(chosen, marks), _formats(chosen)
    tag = _tag(row, sample, prefixes)
    used = {name for written in (tag, *paths.values()) for name in re.findall(r"([^/@{}:]+):", written)} - {"xml"}
    spaces = ", ".join(f"{prefix} {uri}" for uri, prefix in prefixes.items() if prefix in used)
    options = {
        "path": given["path"],
        "rowTag": tag,
        **({"unitTag": unit} if unit else {}),
        **given,
        **({"namespaces": spaces} if spaces else {}),
        **paths,
        **formats,
        **({"locale": locale} if locale else {}),
    }
    schema = ", ".join(column.ddl for column in chosen)
    deep = [f"elements in {name}, of more than {MOST_PLACES:,} kinds" for name in sample.passed]
    unseen = _unseen_keys(all_, is_whole=sample.is_whole)
    left_out = (*(leaf.path for leaf in all_[MOST_COLUMNS:]), *passed_over(row), *unseen, *deep)
    chosen = tuple(replace(one, is_required=one.is_whole(row.profile.count), remark=one.noticed) for one in chosen)
    around = () if isinstance(sample, SchemaProfile) else outside(row, prefixes, {leaf.path for leaf in all_})
    whole = sample.is_whole
    return Proposal(options, schema, chosen, row.profile.count, whole, (), left_out, (), outside=tuple(around))


def _located(row: RowCandidate, given: str | None) -> str | None:
    """The locale of numbers in rows, `given` or the first that only one locale reads; their values bear it."""
    seen = [values for each in row.profile.below() for values in (each.values, *each.attributes.values())]
    found = given or next((next(iter(read)) for values in seen if len(read := values.numbers) == 1), None)
    for values in seen:
        values.locale = found
        values.locale = found if found in values.numbers else None
    return found


def _paths(chosen: Sequence[InferredColumn], marks: tuple[str, str]) -> dict[str, str]:
    """The options that say where columns and fields of structures lie, but where they lie by default."""
    paths = {
        f"path.{column.name}": column.leaf.path
        for column in chosen
        if column.leaf.path != str(default_path(column.name, *marks, is_structure=column.leaf.structure is not None))
    }
    return paths | {f"path.{field}": path for option, field, path in _of_fields(chosen) if option == "path"}


def _formats(chosen: Sequence[InferredColumn]) -> dict[str, str]:
    """The options that say how days and moments in columns and fields of structures are written."""
    formats = {
        f"{kind}Format.{column.name}": pattern
        for column in chosen
        for kind in ("date", "timestamp")
        if kind.upper() in column.leaf.type and (pattern := column.leaf.values.format)
    }
    return formats | {f"{option}.{field}": pattern for option, field, pattern in _of_fields(chosen) if option != "path"}


def _of_fields(chosen: Sequence[InferredColumn]) -> Iterator[tuple[str, str, str]]:
    """The options of the fields of structures: the option, the field behind its column, the value."""
    for column in chosen:
        if column.leaf.structure is not None:
            yield from ((option, f"{column.name}.{field}", v) for option, field, v in column.leaf.structure.options)


def _unseen_keys(leaves: Sequence[InferredLeaf], *, is_whole: bool) -> list[str]:
    """Lists of keys and values that may have further keys: what is not in the sample is in no column either."""
    seen = Counter[str]()
    for leaf in (leaf for leaf in leaves if leaf.key):
        seen["/".join([*[".."] * leaf.up, *leaf.steps]).partition("[")[0]] += len(leaf.values.texts)
    return [f"other keys of {path}" for path, count in seen.items() if count >= MOST_TEXTS or not is_whole]


def _tag(row: RowCandidate, sample: Sample, prefixes: Mapping[str, str]) -> str:
    """Returns the text for rowTag: the local name, unless elements of other namespaces have it, too."""
    alike = {one.tag for one in sample.root.below() if one.local == row.profile.local} - {row.profile.tag}
    if not any(not tag.startswith(f"{{{PUNCT_NS}}}") for tag in alike):
        return row.profile.local
    uri, _, local = row.profile.tag[1:].rpartition("}") if "}" in row.profile.tag else ("", "", row.profile.tag)
    if not uri:
        return f"{{}}{local}"
    return f"{prefixes[uri]}:{local}" if uri in prefixes else row.profile.tag
