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

from xmlstream.dataclasses import dataclass, field
from xmlstream.sources.xml.inference.element_profile import MOST_PLACES, ElementProfile, ObservedValues, Sample
from xmlstream.sources.xml.options.leaf_paths import local_tag
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

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
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

    Raises:
        UsageError: It cannot be read, or is not valid.
    """
    documents = schema_documents(file)
    compiled(documents)
    return _Profiler(documents).profile()


_Declaration = tuple[SchemaDocument, etree._Element]


class _Profiler:
    """Expands declarations from the roots."""

    def __init__(self, documents: Sequence[SchemaDocument]) -> None:
        self._found = SchemaProfile()
        self._global: dict[tuple[str, str], _Declaration] = {}
        self._members: dict[str, list[_Declaration]] = {}
        self._derived: dict[str, list[str]] = {}
        self._places = 0
        for document in documents:
            redefined = document.root.iterfind(f"{XS}redefine/{XS}*")
            for declared in [*document.root.iterchildren(f"{XS}*"), *redefined]:
                if name := declared.get("name"):
                    kind = "type" if local_tag(str(declared.tag)).endswith("Type") else local_tag(str(declared.tag))
                    self._global.setdefault((kind, _tag(document.namespace, name)), (document, declared))
            for prefix, uri in document.root.nsmap.items():
                if uri != XS[1:-1] and uri not in self._found.prefixes:
                    self._found.prefixes[uri] = prefix or ""
            for derived in document.root.iterfind(f".//{XS}complexContent/{XS}*[@base]"):
                name = next((up.get("name") for up in derived.iterancestors(f"{XS}complexType")), None)
                if name:
                    self._derived.setdefault(_named(document, derived, "base"), []).append(name)
        for (kind, _), (document, declared) in self._global.items():
            if kind == "element" and declared.get("substitutionGroup"):
                for head in str(declared.get("substitutionGroup")).split():
                    self._members.setdefault(_resolved(document, declared, head), []).append((document, declared))

    def profile(self) -> SchemaProfile:
        """Returns the profile of documents with each root."""
        elements = {tag: one for (kind, tag), one in self._global.items() if kind == "element"}
        used = {
            _named(document, each, "ref")
            for document in {id(document): document for document, _ in self._global.values()}.values()
            for each in document.root.iterfind(f".//{XS}element[@ref]")
        }
        roots = [tag for tag in elements if tag not in used and not elements[tag][1].get("substitutionGroup")]
        for tag in roots or elements:
            if elements[tag][1].get("abstract") != "true":
                self._add(self._found.root, *elements[tag], _MANY, (1, 1), ())
        self._found.elements = self._places
        return self._found

    def _add(
        self,
        parent: ElementProfile,
        document: SchemaDocument,
        declared: etree._Element,
        parents: int,
        occurs: tuple[int, int],
        stack: tuple[etree._Element, ...],
    ) -> None:
        """Adds the elements of a declaration to those in a parent; `stack` are the types around it."""
        least, most = occurs
        if declared.get("ref") is not None:
            found = self._global.get(("element", _named(document, declared, "ref")))
            if found is None:
                self._found.remark(parent.tag, f"{declared.get('ref')} is not declared in the schema")
                return
            document, declared = found
        tag = document.tag_of(declared)
        if members := self._members.get(tag, []):
            names = ", ".join(str(each.get("name")) for _, each in members)
            self._found.remark(parent.tag, f"{local_tag(tag)} may be one of its substitution group: {names}")
            for member in members:
                self._add(parent, *member, parents, (0, most), stack)
            least = 0
        if declared.get("abstract") == "true" or self._places >= MOST_PLACES:
            if self._places >= MOST_PLACES:
                self._found.remark("", f"the schema has more than {MOST_PLACES:,} places; not all are here")
            return
        self._places += 1
        there = parents if least else parents // 2
        count = there if most == 1 else 2 * there
        profile = ElementProfile(tag, count, most, there)
        if (known := parent.children.get(tag)) is not None:
            self._found.remark(parent.tag, f"{local_tag(tag)} is declared twice in {local_tag(parent.tag)}: an array")
            profile = known
            profile.parents = max(known.parents, there)
            profile.count, profile.most = 2 * profile.parents, 2
        parent.children[tag] = profile
        self._found.identities += _identities(declared, tag)
        self._contents(parent, profile, document, declared, stack)

    def _contents(
        self,
        parent: ElementProfile,
        profile: ElementProfile,
        document: SchemaDocument,
        declared: etree._Element,
        stack: tuple[etree._Element, ...],
    ) -> None:
        """Adds what the elements of a declaration contain."""
        count, name = profile.count, local_tag(profile.tag)
        is_typed = declared.get("type") or any(
            declared.find(f"{XS}{kind}Type") is not None for kind in ("complex", "simple")
        )
        if not is_typed and declared.get("substitutionGroup"):
            # A member of a substitution group has the type of its head by default.
            document, declared = self._global.get(
                ("element", _named(document, declared, "substitutionGroup")), (document, declared)
            )
        own, type_ = declared.find(f"{XS}complexType"), _named(document, declared, "type")
        inner = (document, own) if own is not None else self._global.get(("type", type_))
        if inner is None or local_tag(str(inner[1].tag)) == "simpleType":
            if type_ in ("", f"{XS}anyType") and declared.find(f"{XS}simpleType") is None:
                self._found.remark(
                    parent.tag, f"{name} may have any contents (xs:anyType): its column is the text in it"
                )
            is_nillable = declared.get("nillable") == "true"
            profile.values = self._values(document, declared, "type", count // 2 if is_nillable else count)
        elif inner[1] in stack:
            profile.is_mixed, profile.values = True, DeclaredValues(count, _LENGTH * count)
            text = f"{name} contains itself: its column is the text in it; path 'xml({name})' is all of it"
            self._found.remark(parent.tag, text)
        else:
            if type_ and (kinds := self._derived.get(type_)):
                text = f"{name} may be of a derived type ({', '.join(kinds)}), whose further parts have no column"
                self._found.remark(parent.tag, text)
            self._complex(profile, *inner, count, (*stack, inner[1]))
            if declared.get("nillable") == "true" and profile.values.count:
                profile.values.count //= 2
            if not (profile.values.count or profile.attributes or profile.children):
                self._found.remark(parent.tag, f"{name} has no contents, so that it has no column")

    def _complex(
        self,
        profile: ElementProfile,
        document: SchemaDocument,
        type_: etree._Element,
        count: int,
        stack: tuple[etree._Element, ...],
    ) -> None:
        """Adds the contents of a complex type: XML attributes, and text or elements."""
        if type_.get("mixed") == "true":
            profile.is_mixed = True
            profile.values = DeclaredValues(count, _LENGTH * count)
            name = local_tag(profile.tag)
            text = f"{name} has text among its elements: a path 'xml({name})' keeps these"
            self._found.remark(profile.tag, text)
        for content in type_.iterchildren(f"{XS}simpleContent", f"{XS}complexContent"):
            for derived in content.iterchildren(f"{XS}extension", f"{XS}restriction"):
                base = self._global.get(("type", _named(document, derived, "base")))
                is_restricted = local_tag(str(derived.tag)) == "restriction"
                is_simple = local_tag(str(content.tag)) == "simpleContent"
                if base is None or local_tag(str(base[1].tag)) == "simpleType":
                    profile.values = self._values(document, derived, "base", count) if is_simple else profile.values
                elif base[1] not in stack:
                    # A restriction declares again the elements that remain.
                    add = self._attributes if is_restricted and not is_simple else self._complex
                    add(profile, *base, count, (*stack, base[1]))
                    if is_simple and is_restricted and isinstance(profile.values, DeclaredValues):
                        profile.values = _narrowed(profile.values, derived)
                self._attributes(profile, document, derived, count, stack)
                self._particles(profile, document, derived, count, (1, 1), stack)
        self._attributes(profile, document, type_, count, stack)
        self._particles(profile, document, type_, count, (1, 1), stack)

    def _attributes(
        self,
        profile: ElementProfile,
        document: SchemaDocument,
        inside: etree._Element,
        count: int,
        stack: tuple[etree._Element, ...],
    ) -> None:
        for declared in inside.iterchildren(f"{XS}attribute", f"{XS}attributeGroup", f"{XS}anyAttribute"):
            kind = local_tag(str(declared.tag))
            if kind == "anyAttribute":
                self._found.remark(
                    profile.tag, f"{local_tag(profile.tag)} may have any XML attributes (xs:anyAttribute)"
                )
                continue
            place, home = declared, document
            if declared.get("ref") is not None:
                name = _named(document, declared, "ref")
                found = self._global.get((kind, name))
                if found is None or (kind == "attributeGroup" and found[1] in stack):
                    if kind == "attribute" and declared.get("use") != "prohibited":  # such as xml:lang
                        there = count if declared.get("use") == "required" else count // 2
                        profile.attributes[name] = DeclaredValues(there, _LENGTH * there)
                        self._found.prefixes.setdefault(name[1:].partition("}")[0], "")
                    continue
                home, place = found
            if kind == "attributeGroup":
                self._attributes(profile, home, place, count, (*stack, place))
            elif declared.get("use") == "prohibited":
                profile.attributes.pop(home.tag_of(place), None)
            else:
                there = count if declared.get("use") == "required" else count // 2
                profile.attributes[home.tag_of(place)] = self._values(home, place, "type", there)

    def _particles(
        self,
        profile: ElementProfile,
        document: SchemaDocument,
        inside: etree._Element,
        count: int,
        occurs: tuple[int, int],
        stack: tuple[etree._Element, ...],
    ) -> None:
        """Adds the elements of a model group."""
        least, most = occurs
        is_choice = local_tag(str(inside.tag)) == "choice" and len(inside.findall(f"{XS}*")) > 1
        for part in inside.iterchildren(
            *(f"{XS}{name}" for name in ("element", "sequence", "choice", "all", "group", "any"))
        ):
            low = 0 if is_choice or not least or part.get("minOccurs", "1") == "0" else 1
            if part.get("maxOccurs", "1") == "0":
                continue
            high = 2 if most > 1 or part.get("maxOccurs", "1") != "1" else 1
            match local_tag(str(part.tag)):
                case "element":
                    self._add(profile, document, part, count, (low, high), stack)
                case "any":
                    self._found.remark(profile.tag, f"{local_tag(profile.tag)} may have any other elements (xs:any)")
                case "group":
                    found = self._global.get(("group", _named(document, part, "ref")))
                    if found is not None and found[1] not in stack:
                        self._particles(profile, *found, count, (low, high), (*stack, found[1]))
                case _:
                    self._particles(profile, document, part, count, (low, high), stack)

    def _values(self, document: SchemaDocument, declared: etree._Element, named: str, count: int) -> DeclaredValues:
        """Returns the values of a simple type, which a declaration names by that XML attribute or contains."""
        values = self._simple(document, declared, named, ())
        values.count, values.length = count, _LENGTH * count
        return values

    def _simple(
        self, document: SchemaDocument, declared: etree._Element, named: str, stack: tuple[etree._Element, ...]
    ) -> DeclaredValues:
        inner = declared.find(f"{XS}simpleType")
        if inner is None and declared.get(named) is not None:
            name = _named(document, declared, named)
            found = self._global.get(("type", name))
            if name.startswith(XS):
                local = local_tag(name)
                values = DeclaredValues(declared=_TYPES.get(local, "STRING"))
                values.low, values.high = _BOUNDS.get(local, ("", ""))
                if local in ("NMTOKENS", "IDREFS", "ENTITIES"):
                    values.remarks = ("a list in one text",)
                return _narrowed(values, declared)
            if found is None or found[1] in stack:
                return DeclaredValues(remarks=(f"its type {declared.get(named)} is not declared",))
            document, inner = found
        if inner is None:
            return _narrowed(DeclaredValues(), declared)
        if (restriction := inner.find(f"{XS}restriction")) is not None:
            return _narrowed(self._simple(document, restriction, "base", (*stack, inner)), declared)
        if inner.find(f"{XS}simpleContent") is not None:
            return DeclaredValues()
        if (union := inner.find(f"{XS}union")) is not None:
            names = [*str(union.get("memberTypes", "")).split(), *("" for _ in union.findall(f"{XS}simpleType"))]
            return DeclaredValues(remarks=(f"a union of {len(names)} types",))
        return DeclaredValues(remarks=("a list in one text",))


def _narrowed(values: DeclaredValues, restriction: etree._Element) -> DeclaredValues:
    """Applies the facets of a restriction."""
    facets: dict[str, list[str]] = {}
    for facet in restriction.iterchildren(f"{XS}*"):
        if (value := facet.get("value")) is not None:
            facets.setdefault(local_tag(str(facet.tag)), []).append(value)
    digits, places = (int(facets.pop(name, ["-1"])[0]) for name in ("totalDigits", "fractionDigits"))
    if values.declared.startswith("DECIMAL(38") and (digits >= 0 or places >= 0):
        places = max(places, 0) if digits < 0 or places >= 0 else min(18, digits)
        values.declared = f"DECIMAL({min(max(digits, places, 1), 38) if digits >= 0 else 38},{min(places, 38)})"
    elif values.declared == "BIGINT" and digits > 18:
        values.declared = f"DECIMAL({min(digits, 38)},0)"
    elif digits >= 0:
        values.remarks += (f"totalDigits {digits}",)
    is_ordered = values.declared.startswith("DECIMAL") or values.declared in (
        *_INTEGERS,
        "DATE",
        "TIMESTAMP",
        "DOUBLE",
        "FLOAT",
    )
    for name, step in (("minInclusive", 0), ("minExclusive", 1), ("maxInclusive", 0), ("maxExclusive", -1)):
        for text in facets.get(name, []):
            if (bound := _bound(text, step, values.declared)) is None or not is_ordered:
                continue
            del facets[name]
            values.low, values.high = (bound, values.high) if name.startswith("min") else (values.low, bound)
    if (listed := facets.get("enumeration")) and values.declared in _INTEGERS:
        numbers = sorted({int(text) for text in listed})
        values.low, values.high = str(numbers[0]), str(numbers[-1])
        if len(numbers) == numbers[-1] - numbers[0] + 1:
            del facets["enumeration"]
    facets.pop("whiteSpace", None)
    for name, texts in facets.items():
        shown = ", ".join(texts[:_MOST_SHOWN]) + (", …" if len(texts) > _MOST_SHOWN else "")
        values.remarks += (f"{'one of' if name == 'enumeration' else name} {' '.join(shown.split())}",)
    return values


def _bound(text: str, step: int, type_: str) -> str | None:
    """Returns an inclusive bound; None if it is none of the type."""
    if type_ in ("DATE", "TIMESTAMP"):
        return None if step else text.strip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not step or not number.is_finite():
        return f"{number:f}" if number.is_finite() else None
    if type_ in _INTEGERS:
        return str(int(number) + step)
    places = int(type_.partition(",")[2].rstrip(")")) if type_.startswith("DECIMAL") else 0
    return f"{number + step * Decimal(1).scaleb(-places):f}" if type_.startswith("DECIMAL") else None


def _identities(declared: etree._Element, tag: str) -> Iterator[Identity]:
    for each in declared.iterchildren(f"{XS}key", f"{XS}unique", f"{XS}keyref"):
        selector, fields = each.find(f"{XS}selector"), each.findall(f"{XS}field")
        paths = str("" if selector is None else selector.get("xpath")).split("|")
        rows = tuple(path.strip().rpartition("/")[2].rpartition(":")[2] for path in paths)
        steps = tuple(
            "/".join(_step(step) for step in str(one.get("xpath")).split("/") if step.strip() != ".") for one in fields
        )
        refer = str(each.get("refer", "")).rpartition(":")[2]
        yield Identity(local_tag(str(each.tag)), str(each.get("name")), refer, tag, rows, steps)


def _step(step: str) -> str:
    """Returns a step of a path without its prefix."""
    mark, name = ("@", step.strip()[1:]) if step.strip().startswith("@") else ("", step.strip())
    return mark + name.rpartition(":")[2]


def _tag(namespace: str, name: str) -> str:
    return f"{{{namespace}}}{name}" if namespace else name


def _resolved(document: SchemaDocument, element: etree._Element, name: str) -> str:
    """Returns a qualified name in a schema as in lxml."""
    prefix, _, local = name.strip().rpartition(":")
    if prefix == "xml":
        return _tag("http://www.w3.org/XML/1998/namespace", local)
    spaces: Mapping[str | None, str] = element.nsmap
    return _tag(spaces.get(prefix or None, document.namespace if not prefix else ""), local)


def _named(document: SchemaDocument, element: etree._Element, attribute: str) -> str:
    """Returns the name in an XML attribute of a declaration, as in lxml; empty for none."""
    name = element.get(attribute)
    return "" if name is None else _resolved(document, element, name)
