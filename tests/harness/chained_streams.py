"""Three streams in a chain, `s1` to `s2` by `b` and `s2` to `s3` by `c`, of which one sends more than the others.

In the order in which a query names them they keep 2r + 2 tuples where `s1` sends r and the others one; from the other
end they keep r + 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lxml import etree

import xmlstream as xs
from xmlstream.operators.storage.store import Folder
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog

TABLES = "".join(
    f"CREATE TABLE {name} ({ddl}) USING punctuated_xml OPTIONS (path 'HOME/{name}', rowTag 'r',"
    f" schemes '{said}', maxFilesPerSlice '1'RATE_{name});\n"
    for name, ddl, said in (
        ("s1", "a INT, b INT", "b prefix"),
        ("s2", "b INT, c INT", "b prefix; c prefix"),
        ("s3", "c INT, e INT", "c prefix"),
    )
)
CHAIN = "SELECT a, s2.b, s2.c, e FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c"
FAST = {"s1": 20.0, "s2": 2.0, "s3": 2.0}
RUNS, BETTER_ONE = "join(join(s1, s2), s3)", "join(s1, join(s2, s3))"


def tables(home: Path | str, **rates: str) -> str:
    text = TABLES.replace("HOME", str(home))
    for name in FAST:
        text = text.replace(f"RATE_{name}", f", rate '{rates[name]}'" if name in rates else "")
    return text


def send(home: Path, *numbers: int, s1: int = 20, s2: int = 2, s3: int = 2) -> None:
    """A document of each stream for each slice, which closes all values but those of the last ones."""
    for name, count, columns in (("s1", s1, "ab"), ("s2", s2, "bc"), ("s3", s3, "ce")):
        (home / name).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            rows = [[2 * number + i % 6 if each in "bc" else i for each in columns] for i in range(count)]
            closed = [
                [f"(,{2 * number + 1}]" if o == each else "*" for o in columns] for each in columns if each in "bc"
            ]
            items = "".join(_element("r", columns, row) for row in rows)
            items += "".join(_element("p:r", columns, patterns) for patterns in closed)
            (home / name / f"{number:04d}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{items}</s>")


def _element(tag: str, columns: str, values: Sequence[object]) -> str:
    return f"<{tag}>{''.join(f'<{c}>{value}</{c}>' for c, value in zip(columns, values, strict=True))}</{tag}>"


def run(session: Any, home: Path, query: str = CHAIN, rates: dict[str, str] | None = None, **options: Any) -> Any:
    text = tables(home / "in", **(rates or {})) + query
    given: Any = {"keep_open": True, "checkpoint": home / "state"} | options
    return xs.from_sql(session, text).run(home / "out", **given)


def last(home: Path) -> Commit:
    """The last commit."""
    return CommitLog(Folder(home / "state").below("commits")).records()[-1]


def rows(home: Path) -> Counter[tuple[str, ...]]:
    """The tuples of the result."""
    return Counter(
        tuple(child.text or "" for child in row)
        for path in (home / "out").glob("slice-*.xml")
        for row in etree.parse(path).getroot().iterfind("row")
    )
