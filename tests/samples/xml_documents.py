"""Random documents with all that XML allows, and traps: what looks like an item and is none."""

from __future__ import annotations

from random import Random

from tests.oracles.xml_oracle import PUNCT

ROW = "row"
PATHS = ["a", "b", "@id", "x/y/@z", "../@up"]
COLUMNS = "a STRING, b STRING, _id STRING, z STRING, up STRING"
OPTIONS = {"path.z": "x/y/@z", "path.up": "../@up", "ignoreSurroundingSpaces": "false"}

XSI = "xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i"

BLANKS = ["", "\n", "\r\n", "  ", "\n\t", " \n"]
TEXTS = ["", "1", "22", "abc", "x y", " s ", "é", "\U0001f600", "a>b", "]]", '"', "'", "*", "[1,2)", "{a,b}", "null"]
LIVELY = [
    "&amp;",
    "&lt;row>",
    "&#13;",
    "&#x41;",
    "\r",
    "\r\n",
    "<![CDATA[</row>]]>",
    "<!-- <row> -->",
    "<?peeled?>",
    "&quot;",
]
BETWEEN = [
    "<!-- <row><a>1</a></row> -->",
    "<![CDATA[<row><a>1</a></row>]]>",
    "<?peeled?>",
    "<?p <row></row> ?>",
    "<other><a>1</a></other>",
    "<rows/>",
    "<rowx><a>1</a></rowx>",
    "text > more",
    "<wrap up='w'>",
    "<d:wrap xmlns:d='urn:d' xmlns='urn:e'>",
    f"<wrap xmlns='{PUNCT}'>",
    "</wrap>",
]


class Writer:
    """Writes one document."""

    may_be_mixed = 0.1

    def __init__(self, random: Random) -> None:
        self.random = random
        self.open: list[str] = []
        # Most documents are mostly regular: the fast ways of reading them must be gone.
        self.irregular = random.choice([0.0, 0.02, 0.1, 0.5, 1.0])
        self.layout = random.choice(BLANKS)
        self.attributes = random.random() < 0.4
        self.lively = random.choice([0.0, 0.0, 0.05, 0.3])
        # In a few, elements of another namespace are called as the tuples are.
        self.mixed = random.random() < self.may_be_mixed
        self.default = ""

    def document(self, items: int) -> str:
        root = self.random.choice(["root", "p:root", "ro.ot"])
        declared = [f'xmlns:punct="{PUNCT}"', "xmlns:p='urn:p'", f"xmlns:q='{PUNCT}'"]
        self.default = self.random.choice(["", "urn:d", PUNCT])
        declared += [f'xmlns="{self.default}"'] if self.default else []
        declared += self.random.choice([[], ['up="top"'], ["up=' > '"]])
        separator = self.random.choice(BLANKS)
        body = ""
        for _ in range(items):
            if self.random.random() < self.irregular / 3:
                body += self._between()
            body += self._item() + separator
        body += "".join(f"</{name}>" for name in reversed(self.open))
        before = self.random.choice(["", "<!-- > -->", "<?x y?>\n", "\n"])
        after = self.random.choice(["", "\n", "<!-- </root> -->", "<?x?>"])
        return f"{before}<{root} {' '.join(declared)}>{body}</{root}>{after}"

    def _between(self) -> str:
        part = self.random.choice(BETWEEN)
        if not self.mixed:
            part = part.replace(" xmlns='urn:e'", "")
        if part == "</wrap>":
            return f"</{self.open.pop()}>" if self.open else ""
        if part.startswith(("<wrap", "<d:wrap")):
            self.open.append("d:wrap" if part.startswith("<d:") else "wrap")
        return part

    def _item(self) -> str:
        irregular = self.random.random() < self.irregular
        kind = self.random.random()
        name = "punct:row" if kind < 0.15 else "row"
        if irregular and kind > 0.8:
            name = self.random.choice(["p:row", "q:row"] if self.mixed or self.default == PUNCT else ["q:row"])
        attributes = f' id="{self._text(attribute=True)}"' if self.attributes else ""
        leaves = [f"<a>{self._text()}</a>", f"<b>{self._text()}</b>"]
        if self.attributes:
            leaves.append(f'<x><y z="{self._text(attribute=True)}"/></x>')
        if irregular:
            attributes, leaves = self._disturbed(attributes, leaves)
        blank = self.random.choice(BLANKS) if irregular else self.layout
        return f"<{name}{attributes}>{blank}{blank.join(leaves)}{blank}</{name}>"

    def _disturbed(self, attributes: str, leaves: list[str]) -> tuple[str, list[str]]:
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(leaves) + 1)
            change = self.random.randrange(13)
            if change == 0 and leaves:
                leaves.pop(at % len(leaves))
            elif change == 1:
                self.random.shuffle(leaves)
            elif change == 2 and leaves:
                leaves.append(leaves[at % len(leaves)])
            else:
                leaves.insert(at, self._extra(change))
            if change == 12 and not attributes:
                forms = [" id='7'", ' id = "8"', ' id ="8"', '\tid="9"\n', " other='x'", " p:id='q'", f" {XSI}:id='r'"]
                attributes = self.random.choice(forms)
        return attributes, leaves

    def _extra(self, change: int) -> str:
        nil = f"{XSI}:nil"
        return {
            3: "<row><a>inner</a></row>",
            4: "<a/>",
            5: f"<b {nil}='true'/>",
            6: "<c>*</c>",
            7: "<c>5</c>",
            8: f"<a>{self.random.choice(LIVELY)}</a>",
            9: "<p:a>prefixed</p:a>",
            10: "stray",
            11: "<b><i>in</i>side</b>",
        }.get(change, "<!-- c -->")

    def _text(self, *, attribute: bool = False) -> str:
        if self.random.random() < self.lively:
            choices = [text for text in LIVELY if not (attribute and "<" in text)]
        else:
            choices = [text for text in TEXTS if not (attribute and '"' in text)]
        return self.random.choice(choices)


def encoded(text: str, random: Random) -> bytes:
    """The document in some encoding."""
    match random.randrange(6):
        case 0:
            return b"\xef\xbb\xbf" + text.encode()
        case 1:
            return ("\ufeff" + text).encode("utf-16-le")
        case 2 if text.isascii() or all(ord(c) < 256 for c in text):
            return b"<?xml version='1.0' encoding='iso-8859-1'?>" + text.encode("iso-8859-1")
        case 3:
            return b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' + text.encode()
        case _:
            return text.encode()
