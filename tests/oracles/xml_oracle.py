"""What a document means, by XPath over the whole of it; shares no code with the parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree

PUNCT = "http://www.cse.ogi.edu/dot/niagara/punct"
XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
XSI_NIL = XSI + "nil"
BLANKS = " \t\r\n"


@dataclass(frozen=True)
class Item:
    kind: str  # tuple, punctuation, malformed, dropped, or stray: nothing comes after it
    texts: tuple[str | None, ...] = ()


def well_formed(document: bytes) -> etree._Element | None:
    try:
        return etree.fromstring(document, etree.XMLParser(resolve_entities=False, no_network=True, collect_ids=False))
    except etree.XMLSyntaxError:
        return None


def before_the_fault(document: bytes, row: str, paths: list[str]) -> list[Item]:
    """The items that end before libxml2 says that the document is not well-formed; it finds some faults late."""
    parser = etree.XMLPullParser(("end",), tag="{*}" + row, resolve_entities=False, no_network=True, collect_ids=False)
    try:
        for at in range(len(document)):  # it looks at all that it has for bytes that are no text
            parser.feed(document[at : at + 1])
        parser.close()
    except etree.XMLSyntaxError:
        pass
    found: list[etree._Element] = []
    for _, element in parser.read_events():
        assert isinstance(element, etree._Element)
        # It goes on behind a prefix that nothing declares, with the prefix as a part of the name.
        if any(":" in str(inner.tag).rpartition("}")[2] for inner in element.iter("*")):
            break
        if not _xpath(element, f"ancestor::*[local-name()='{row}']"):
            found += _elements(element, row)
    return _items(found, paths)


def items(root: etree._Element, row: str, paths: list[str]) -> list[Item]:
    """The items of a document, elements `row`, or `one|other`.

    `paths` are XPaths from the row in which a name stands for any namespace; `name(.)` is the row's local name.
    """
    found = _items(_elements(root, row), paths)
    if "|" not in row or "name(.)" in paths:
        return found
    return [Item("dropped") if item.kind == "punctuation" else item for item in found]


def _elements(root: etree._Element, row: str) -> list[etree._Element]:
    named = "[" + " or ".join(f"local-name()='{name}'" for name in row.split("|")) + "]"
    return list(_xpath(root, f"descendant-or-self::*{named}[not(ancestor::*{named}[namespace-uri()='{PUNCT}'])]"))


def _items(elements: list[etree._Element], paths: list[str]) -> list[Item]:
    """What elements say, up to one that is called as the tuples are in another namespace."""
    found, namespace = list[Item](), None
    for element in elements:
        here = str(element.tag).rpartition("}")[0][1:]
        namespace = here if namespace is None and here != PUNCT else namespace
        if here not in (PUNCT, namespace):
            return [*found, Item("stray")]
        found.append(_item(element, paths))
    return found


def _item(element: etree._Element, paths: list[str]) -> Item:
    return _punctuation(element, paths) if str(element.tag).startswith("{" + PUNCT + "}") else _tuple(element, paths)


def _xpath(element: etree._Element, path: str) -> Any:
    return element.xpath(path)


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def _select(element: etree._Element, path: str) -> list[Any]:
    if path == "name(.)":
        return [etree.QName(element).localname]
    *steps, last = [step if step.startswith(("@", ".")) else f"*[local-name()='{step}']" for step in path.split("/")]
    if last.startswith("@"):
        # In no namespace, or else in any, that of nil and its like last.
        any_, xsi = f"@*[local-name()='{last[1:]}']", f"namespace-uri()='{XSI[1:-1]}'"
        last = f"{any_}[namespace-uri()='' or not(../{last})][not({xsi}) or count(../{any_})=1]"
    return list(_xpath(element, "/".join([*steps, last])))


def _text(node: Any) -> str | None:
    if isinstance(node, str):
        return str(node)
    if (node.get(XSI_NIL) or "").strip(BLANKS) in ("true", "1"):
        return None
    return str(_xpath(node, "string()"))


def _tuple(element: etree._Element, paths: list[str]) -> Item:
    selected = [_select(element, path) for path in paths]
    if any(len(nodes) > 1 for nodes in selected):
        return Item("malformed")
    return Item("tuple", tuple(_text(nodes[0]) if nodes else None for nodes in selected))


def _punctuation(row: etree._Element, paths: list[str]) -> Item:
    leaves: list[tuple[str, str | None]] = []
    try:
        _walk(row, "", paths, leaves)
    except ValueError:
        return Item("malformed")
    inner = [path for path in paths if not path.startswith("..") and path != "name(.)"]
    found = [path for path, _ in leaves]
    if not set(found) & set(inner) or any(found.count(path) > 1 for path in inner):
        return Item("malformed")
    if any(path not in inner and (text or "").strip(BLANKS) != "*" for path, text in leaves):
        return Item("dropped")
    texts: list[str | None] = []
    for path in paths:
        if path in inner:
            given = dict(leaves).get(path)
            texts.append("null" if given is None and path in found else given)
        else:
            value = _select(row, path)
            texts.append('"' + str(value[0]).replace('"', '""') + '"' if value else "null")
    return Item("punctuation", tuple(texts))


def _means(element: etree._Element, name: str, below: str, paths: list[str]) -> bool:
    """Whether a declared leaf is an attribute of nil's namespace: of its local name no other is there."""
    leaf = f"@{etree.QName(name).localname}"
    return below + leaf in paths and _select(element, leaf) == [element.get(name)]


def _walk(element: etree._Element, path: str, paths: list[str], leaves: list[tuple[str, str | None]]) -> None:
    """All that a punctuation says below an element; ValueError where it cannot be read."""
    below = path + "/" if path else ""
    given = _attributes(element)
    leaves += [
        (f"{below}@{etree.QName(name).localname if etree.QName(name).localname not in given else name}", value)
        for name, value in _attributes(element).items()
        if not name.startswith(("{http://www.w3.org/XML/1998/namespace}", "{" + PUNCT))
        and not (name.startswith(XSI) and not _means(element, name, below, paths))
    ]
    if any(name.startswith("{" + PUNCT + "}") for name in _attributes(element)):
        raise ValueError("an attribute of punctuations")
    children = _xpath(element, "*")
    own = "".join(_xpath(element, "text()")).strip(BLANKS)
    through = [declared.removeprefix(below) for declared in paths if declared.startswith(below)]
    if path in paths:
        if children:
            raise ValueError("elements inside a leaf")
        leaves.append((path, _text(element)))
    elif children or any(not step.startswith(("@", ".")) for step in through):
        if own:
            raise ValueError("stray text")
    elif own or not through:
        leaves.append((path, own))
    for child in children:
        _walk(child, below + etree.QName(child).localname, paths, leaves)
