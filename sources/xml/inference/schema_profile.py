"""Profile of the elements that an XML Schema declares, as if of a document in which half of the optional parts occur.

So rows, columns, paths and structures are found as in documents; types, bounds and what is required are the schema's.
What columns cannot express is kept as remarks, in words; nothing is left out silently:

- facets without a domain (patterns, lengths, enumerations of strings) belong to their values;
- wildcards, recursion, mixed content, substitution groups and abstract types belong to their elements;
- `xs:key` and `xs:unique` become `uniqueIds` if they name one column of all rows, `xs:keyref` is described.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from lxml import etree

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.sql_type import INTEGERS
from xmlstream.sources.xml.inference.element_profile import MOST_PLACES, ElementProfile, ObservedValues, Sample
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.qualified_names import XML_PREFIXES
from xmlstream.sources.xml.options.schema_documents import XS, SchemaDocument, compiled, schema_documents

_MANY = 1 << 40
"""The number of documents; each optional part is in half of its parents, each repeated one twice in each."""

_LENGTH = 8
"""The number of characters of a text."""

_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "int": "INT",
    "long": "BIGINT",
    "integer": "BIGINT",
    "unsignedByte": "SMALLINT",
    "unsignedShort": "INT",
    "unsignedInt": "BIGINT",
    "unsignedLong": "DECIMAL(20,0)",
    "nonNegativeInteger": "BIGINT",
    "positiveInteger": "BIGINT",
    "nonPositiveInteger": "BIGINT",
    "negativeInteger": "BIGINT",
    "decimal": "DECIMAL(38,18)",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "dateTime": "TIMESTAMP",
    "dateTimeStamp": "TIMESTAMP",
}
"""The SQL type of each type that is built in; others are strings."""

_BOUNDS = {
    "unsignedByte": ("0", "255"),
    "unsignedShort": ("0", "65535"),
    "unsignedInt": ("0", "4294967295"),
    "unsignedLong": ("0", "18446744073709551615"),
    "nonNegativeInteger": ("0", ""),
    "positiveInteger": ("1", ""),
    "nonPositiveInteger": ("", "0"),
    "negativeInteger": ("", "-1"),
}

_MOST_SHOWN = 8
"""The number of enumerated values that a remark shows."""


@dataclass(slots=True)
class DeclaredValues(ObservedValues):
    """The values at one place, as a schema declares them.

    Attributes:
        declared: Their SQL type.
        low: Their least value; empty for none.
        high: Their greatest value; empty for none.
        remarks: What a column cannot express.
    """

    declared: str = "STRING"
    low: str = ""
    high: str = ""
    remarks: tuple[str, ...] = ()

    def merged(self, other: ObservedValues) -> ObservedValues:
        """Merges the values of two places; of different types, they are strings."""
        one = DeclaredValues(self.count + other.count, self.length + other.length)
        if not isinstance(other, DeclaredValues) or other.declared != self.declared:
            one.declared = "STRING" if other.count else self.declared
        else:
            one.declared = self.declared
            one.low, one.high = (
                each if each == its else "" for each, its in ((self.low, other.low), (self.high, other.high))
            )
        one.remarks = tuple(dict.fromkeys([*self.remarks, *getattr(other, "remarks", ())]))
        return one

    @property
    def is_blank(self) -> bool:
        """Whether all texts are blank: a declared value is none."""
        return False

    @property
    def type(self) -> str:
        """The declared type."""
        return self.declared

    @property
    def format(self) -> str | None:
        """The pattern of dates: a schema's are in ISO 8601."""
        return None

    @property
    def domain(self) -> str:
        """The bounds as in the option `domains`; empty for none."""
        return f"{self.low}..{self.high}" if self.low or self.high else ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A constraint of identity.

    Attributes:
        kind: `key`, `unique` or `keyref`.
        refer: The name of the key that a keyref refers to.
        scope: The tag of the element in which it holds.
        rows: The local names of the elements that it selects.
        fields: The paths of its values in one of these, with local names.
    """

    kind: str
    name: str
    refer: str
    scope: str
    rows: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(slots=True)
class SchemaProfile(Sample):
    """What a schema declares.

    Attributes:
        remarks: What no column can express, for elements of a local name.
        identities: The constraints of identity.
    """

    remarks: dict[str, dict[str, None]] = field(default_factory=dict)
    identities: list[Identity] = field(default_factory=list)

    def remark(self, tag: str, text: str) -> None:
        """Notes a remark on the elements of a tag, once."""
        self.remarks.setdefault(local_tag(tag), {})[text] = None


def schema_profile(file: str) -> SchemaProfile:
    """Profiles the documents of a schema: each global element that no other one contains is the root of some.

    A schema with a flaw is read as far as it goes; the flaw is a remark.

    Raises:
        UsageError: It cannot be read.
    """
    documents = schema_documents(file)
    profile = _Profiler(documents).profile()
    try:
        compiled(documents)
    except UsageError as error:
        profile.remark("", " ".join(error.what.split()))
    return profile


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A declaration in a schema, or a part of one; `around` are the types and groups that are being expanded."""

    document: SchemaDocument
    element: etree._Element
    around: tuple[etree._Element, ...] = ()

    @property
    def kind(self) -> str:
        """The kind, such as `attribute`; `type` for simple and complex ones."""
        name = local_tag(str(self.element.tag))
        return "type" if name in ("simpleType", "complexType") else name

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.element.tag == f"{XS}complexType"

    @property
    def is_expanding(self) -> bool:
        """Whether it is expanded already, around this place."""
        return self.element in self.around

    @property
    def default(self) -> str | None:
        """What an absent value means."""
        return self.element.get("default", self.element.get("fixed"))

    def named(self, attribute: str) -> str:
        """Returns the name in an XML attribute, as in lxml; empty for none."""
        name = self.element.get(attribute)
        return "" if name is None else self.resolved(name)

    def resolved(self, name: str) -> str:
        """Returns a qualified name in the schema as in lxml."""
        prefix, _, local = name.strip().rpartition(":")
        spaces: Mapping[str | None, str] = {**self.element.nsmap, "xml": XML_PREFIXES["xml"]}
        return _tag(spaces.get(prefix or None, "" if prefix else self.document.namespace), local)

    def parts(self, *kinds: str) -> Iterator[_Declaration]:
        """Yields the parts of these kinds, all without any."""
        for each in self.element.iterchildren(*(f"{XS}{kind}" for kind in kinds or "*")):
            yield replace(self, element=each)

    def part(self, kind: str) -> _Declaration | None:
        """Returns the first part of a kind."""
        return next(self.parts(kind), None)

    def expanding(self) -> _Declaration:
        """Returns it as one that is being expanded."""
        return replace(self, around=(*self.around, self.element))


class _Profiler:
    """Expands declarations from the roots."""

    def __init__(self, documents: Sequence[SchemaDocument]) -> None:
        self._found = SchemaProfile()
        self._global: dict[tuple[str, str], _Declaration] = {}
        self._members: dict[str, list[_Declaration]] = {}
        self._derived: dict[str, list[str]] = {}
        self._used: set[str] = set()
        for document in documents:
            whole = _Declaration(document, document.root)
            for one in (*whole.parts(), *(one for redefined in whole.parts("redefine") for one in redefined.parts())):
                if name := one.element.get("name"):
                    self._global.setdefault((one.kind, _tag(document.namespace, name)), one)
                for head in str(one.element.get("substitutionGroup", "")).split():
                    self._members.setdefault(one.resolved(head), []).append(one)
                for base in one.element.iterfind(f"{XS}complexContent/{XS}*[@base]"):
                    self._derived.setdefault(replace(one, element=base).named("base"), []).append(str(name))
            references = document.root.iterfind(f".//{XS}element[@ref]")
            self._used |= {replace(whole, element=each).named("ref") for each in references}
            for prefix, uri in document.root.nsmap.items():
                if uri != XS[1:-1]:
                    self._found.prefixes.setdefault(uri, prefix or "")

    def profile(self) -> SchemaProfile:
        """Returns the profile of documents with each root."""
        elements = {tag: one for (kind, tag), one in self._global.items() if kind == "element"}
        roots = [
            tag for tag, one in elements.items() if not (tag in self._used or one.element.get("substitutionGroup"))
        ]
        for tag in roots or elements:
            self._add(self._found.root, elements[tag], _MANY, (1, 1))
        return self._found

    def _referred(self, one: _Declaration, attribute: str = "ref", kind: str = "") -> _Declaration | None:
        """Returns the global declaration that another one names; None if there is none."""
        found = self._global.get((kind or one.kind, one.named(attribute)))
        return None if found is None else replace(found, around=one.around)

    def _add(self, parent: ElementProfile, declared: _Declaration, parents: int, occurs: tuple[int, int]) -> None:
        """Adds the elements of a declaration to so many parents."""
        one = self._referred(declared) or declared
        if one.element.get("name") is None:
            self._found.remark(parent.tag, f"{one.element.get('ref')} is not declared in the schema")
            return
        least, most = occurs
        tag = one.document.tag_of(one.element)
        if members := self._members.get(tag, []):
            names = ", ".join(str(member.element.get("name")) for member in members)
            self._found.remark(parent.tag, f"{local_tag(tag)} may be one of its substitution group: {names}")
            for member in members:
                self._add(parent, replace(member, around=one.around), parents, (0, most))
            least = 0
        if self._found.elements >= MOST_PLACES:
            self._found.remark("", f"the schema has more than {MOST_PLACES:,} places; not all are here")
        elif one.element.get("abstract") != "true":
            self._found.elements += 1
            there = parents if least else parents // 2
            profile = ElementProfile(tag, there * most, most, there)
            if (known := parent.children.get(tag)) is not None:
                self._found.remark(
                    parent.tag, f"{local_tag(tag)} is declared twice in {local_tag(parent.tag)}: an array"
                )
                profile.parents = max(known.parents, there)
                profile.count, profile.most = 2 * profile.parents, 2
            parent.children[tag] = profile
            self._found.identities += _identities(one, tag)
            self._contents(parent.tag, profile, one)

    def _contents(self, parent: str, profile: ElementProfile, one: _Declaration) -> None:
        """Adds what the elements of a declaration contain."""
        name = local_tag(profile.tag)
        if not (one.element.get("type") or one.part("complexType") or one.part("simpleType")):
            # A member of a substitution group has the type of its head by default.
            one = self._referred(one, "substitutionGroup") or one
        # An element that is nil has no contents.
        count = profile.count // 2 if one.element.get("nillable") == "true" else profile.count
        type_ = one.part("complexType") or self._referred(one, "type", "type")
        if type_ is None or not type_.is_complex:
            if one.named("type") in ("", f"{XS}anyType") and one.part("simpleType") is None:
                self._found.remark(parent, f"{name} may have any contents (xs:anyType): its column is the text in it")
            profile.values = self._values(one, "type", count)
        elif type_.is_expanding:
            profile.is_mixed, profile.values = True, DeclaredValues(count, _LENGTH * count)
            text = f"{name} contains itself: its column is the text in it; path 'xml({name})' is all of it"
            self._found.remark(parent, text)
        else:
            if kinds := self._derived.get(one.named("type")):
                text = f"{name} may be of a derived type ({', '.join(kinds)}), whose further parts have no column"
                self._found.remark(parent, text)
            self._complex(profile, type_.expanding(), count)
            if not (profile.values.count or profile.attributes or profile.children):
                self._found.remark(parent, f"{name} has no contents, so that it has no column")

    def _complex(self, profile: ElementProfile, type_: _Declaration, count: int) -> None:
        """Adds the contents of a complex type: XML attributes, and text or elements."""
        contents = [*type_.parts("simpleContent", "complexContent")]
        if any(one.element.get("mixed") == "true" for one in (type_, *contents)):
            profile.is_mixed, profile.values = True, DeclaredValues(count, _LENGTH * count)
            name = local_tag(profile.tag)
            self._found.remark(profile.tag, f"{name} has text among its elements: a path 'xml({name})' keeps these")
        for content in contents:
            is_simple = content.kind == "simpleContent"
            for derived in content.parts("extension", "restriction"):
                base, is_restricted = self._referred(derived, "base", "type"), derived.kind == "restriction"
                if base is None or not base.is_complex:
                    profile.values = self._values(derived, "base", count) if is_simple else profile.values
                elif not base.is_expanding:
                    # A restriction declares again the elements that remain.
                    add = self._attributes if is_restricted and not is_simple else self._complex
                    add(profile, base.expanding(), count)
                    if is_simple and is_restricted and isinstance(profile.values, DeclaredValues):
                        profile.values = _narrowed(profile.values, derived)
                self._attributes(profile, derived, count)
                self._particles(profile, derived, count, (1, 1))
        self._attributes(profile, type_, count)
        self._particles(profile, type_, count, (1, 1))

    def _attributes(self, profile: ElementProfile, inside: _Declaration, count: int) -> None:
        """Adds the XML attributes of a type or a group."""
        for declared in inside.parts("attribute", "attributeGroup", "anyAttribute"):
            one, use = self._referred(declared) or declared, str(declared.element.get("use")).strip()
            there = count if use == "required" else count // 2
            if one.kind == "anyAttribute":
                name = local_tag(profile.tag)
                self._found.remark(profile.tag, f"{name} may have any XML attributes (xs:anyAttribute)")
            elif one.kind == "attributeGroup":
                if not one.is_expanding:
                    self._attributes(profile, one.expanding(), count)
            else:
                tag = one.named("ref") or one.document.tag_of(one.element)  # such as xml:lang, if it is not declared
                profile.attributes.pop(tag, None)
                if use != "prohibited":
                    profile.attributes[tag] = self._values(one, "type", there)

    def _particles(self, profile: ElementProfile, inside: _Declaration, count: int, occurs: tuple[int, int]) -> None:
        """Adds the elements of a model group."""
        is_choice = inside.kind == "choice" and len([*inside.parts()]) > 1
        for part in inside.parts("element", "sequence", "choice", "all", "group", "any"):
            if part.element.get("maxOccurs") == "0":
                continue
            low = 0 if is_choice or not occurs[0] or part.element.get("minOccurs") == "0" else 1
            high = 2 if occurs[1] > 1 or part.element.get("maxOccurs", "1") != "1" else 1
            one = self._referred(part) or part
            if part.kind == "element":
                self._add(profile, part, count, (low, high))
            elif part.kind == "any":
                self._found.remark(profile.tag, f"{local_tag(profile.tag)} may have any other elements (xs:any)")
            elif not one.is_expanding:
                self._particles(profile, one.expanding(), count, (low, high))

    def _values(self, declared: _Declaration, named: str, count: int) -> DeclaredValues:
        """Returns the values of a simple type, which a declaration names by that XML attribute or contains."""
        values = self._simple(declared, named)
        values.count, values.length = count, _LENGTH * count
        if declared.default is not None:
            values.remarks += (f"default {declared.default}",)
        return values

    def _simple(self, declared: _Declaration, named: str) -> DeclaredValues:
        name = declared.named(named)
        inner = declared.part("simpleType") or self._referred(declared, named, "type")
        if inner is None or inner.is_expanding:
            local = local_tag(name) if name.startswith(XS) else ""
            low, high = _BOUNDS.get(local, ("", ""))
            words = ("a list in one text",) if local in ("NMTOKENS", "IDREFS", "ENTITIES") else ()
            words = (f"its type {declared.element.get(named)} is not declared",) if name and not local else words
            return _narrowed(
                DeclaredValues(declared=_TYPES.get(local, "STRING"), low=low, high=high, remarks=words), declared
            )
        if (restriction := inner.expanding().part("restriction")) is not None:
            return _narrowed(self._simple(restriction, "base"), declared)
        union = inner.part("union")
        return DeclaredValues(remarks=("a list in one text" if union is None else "one of several types",))


def _narrowed(values: DeclaredValues, restriction: _Declaration) -> DeclaredValues:
    """Applies the facets of a restriction."""
    facets: dict[str, list[str]] = {}
    for facet in restriction.parts():
        if (value := facet.element.get("value")) is not None:
            facets.setdefault(facet.kind, []).append(value)
    _narrow_digits(values, facets)
    _narrow_bounds(values, facets)
    if (listed := facets.get("enumeration")) and values.declared in INTEGERS:
        numbers = sorted({int(text) for text in listed})
        values.low, values.high = str(numbers[0]), str(numbers[-1])
        if len(numbers) == numbers[-1] - numbers[0] + 1:
            del facets["enumeration"]
    facets.pop("whiteSpace", None)
    for name, texts in facets.items():
        shown = ", ".join(texts[:_MOST_SHOWN]) + (", …" if len(texts) > _MOST_SHOWN else "")
        values.remarks += (f"{'one of' if name == 'enumeration' else name} {' '.join(shown.split())}",)
    return values


def _narrow_digits(values: DeclaredValues, facets: dict[str, list[str]]) -> None:
    """Takes the numbers of digits out of the facets, into a type of that precision where there is one."""
    digits, places = (
        int(text) if (text := facets.pop(name, [""])[0].strip()).isdigit() else -1
        for name in ("totalDigits", "fractionDigits")
    )
    if values.declared.startswith("DECIMAL(38") and (digits >= 0 or places >= 0):
        places = max(places, 0) if digits < 0 or places >= 0 else min(18, digits)
        values.declared = f"DECIMAL({min(max(digits, places, 1), 38) if digits >= 0 else 38},{min(places, 38)})"
    elif values.declared == "BIGINT" and digits > 18:
        values.declared = f"DECIMAL({min(digits, 38)},0)"
    elif digits >= 0:
        values.remarks += (f"totalDigits {digits}",)


def _narrow_bounds(values: DeclaredValues, facets: dict[str, list[str]]) -> None:
    """Takes the bounds out of the facets that the values have in their type."""
    for name, step in (("minInclusive", 0), ("minExclusive", 1), ("maxInclusive", 0), ("maxExclusive", -1)):
        for text in facets.get(name, []) if values.declared != "STRING" else ():
            if (bound := _bound(text.strip(), step, values.declared)) is not None:
                del facets[name]
                values.low, values.high = (bound, values.high) if name.startswith("min") else (values.low, bound)


def _bound(text: str, step: int, type_: str) -> str | None:
    """Returns an inclusive bound, so many steps from a text; None if there is no such step."""
    places = "0" if type_ in INTEGERS else type_.partition(",")[2].rstrip(")")
    try:
        return text if not step else f"{Decimal(text) + step * Decimal(1).scaleb(-int(places)):f}"
    except (InvalidOperation, ValueError):
        return None


def _identities(declared: _Declaration, tag: str) -> Iterator[Identity]:
    for each in declared.parts("key", "unique", "keyref"):
        (selector, *fields) = (str(one.element.get("xpath")) for one in each.parts("selector", "field"))
        rows = tuple(_step(path.strip().rpartition("/")[2]) for path in selector.split("|"))
        steps = tuple("/".join(_step(step) for step in path.split("/") if step.strip() != ".") for path in fields)
        refer = _step(str(each.element.get("refer", "")))
        yield Identity(each.kind, str(each.element.get("name")), refer, tag, rows, steps)


def _step(step: str) -> str:
    """Returns a step of a path without its prefix."""
    mark, name = ("@", step.strip()[1:]) if step.strip().startswith("@") else ("", step.strip())
    return mark + name.rpartition(":")[2]


def _tag(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}" if namespace else name
