"""The damage campaign: each file of a checkpoint and its outputs in turn truncated, emptied, deleted, a bit flipped.

    .ci/java .venv/bin/python -m tests.campaigns.damage [--in-process] [what]…

Whatever was damaged, the next run either gives the right answer or stops with one sentence that says what to do. It
takes some minutes on two cores for each of `RUNS`, all of them or those named.
`tests/xmlstream/runtime/checkpoint/test_checkpoint.py` does the same in seconds, without Spark.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import xmlstream as xs
from tests.harness.file_damage import DAMAGES
from xmlstream.operators.state import closed_set
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint import commit_log
from xmlstream.session.spark_session import open_spark_session

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


def groups(number: int) -> str:
    """A night of groups: it closes one, and leaves others open."""
    rows = "".join(f"<t><a>{a}</a><b>{number}</b></t>" for a in range(number, number + 3))
    return f"{rows}<p:t><a>{number}</a><b>*</b></p:t>"


def views(number: int) -> str:
    """A night of views: five visitors come and leave for good, a sixth stays; and time passes."""
    rows = "".join(
        f"<v><sid>s{number}-{one}</sid><at>2026-01-{number:02}T0{one}:{minute:02}:00Z</at></v>"
        for one in range(6)
        for minute in (0, 3, 40)
    )
    gone = "".join(f"<p:v><sid>s{number}-{one}</sid></p:v>" for one in range(5))
    return f"{rows}{gone}<p:v><at>(,2026-01-{number:02}T05:10:00Z]</at></p:v>"


@dataclass(frozen=True, slots=True)
class Run:
    """A query that is run night by night, and what the document of a night holds."""

    query: str
    night: Callable[[int], str]


RUNS = {
    "groups": Run(
        """
CREATE TABLE s (a INT, b INT) USING punctuated_xml OPTIONS (path '{home}/nights', rowTag 't', schemes 'a');
CREATE TABLE counts USING punctuated_xml OPTIONS (path '{home}/counts');
CREATE TABLE pairs USING punctuated_xml OPTIONS (path '{home}/pairs');
INSERT INTO counts SELECT a, count(*) AS n FROM s GROUP BY a;
INSERT INTO pairs SELECT x.a, x.b, y.b AS c FROM s AS x JOIN s AS y ON x.a = y.a WHERE x.b < y.b;
""",
        groups,
    ),
    # Closed strings in sorted files, some of them merged; what joins within ranges, as-of joins and sessions keep.
    "strings": Run(
        """
CREATE TABLE v (sid STRING NOT NULL, at TIMESTAMP NOT NULL) USING punctuated_xml
OPTIONS (path '{home}/nights', rowTag 'v', schemes 'sid; at prefix');
CREATE TABLE counts USING punctuated_xml OPTIONS (path '{home}/counts');
CREATE TABLE near USING punctuated_xml OPTIONS (path '{home}/near');
CREATE TABLE last USING punctuated_xml OPTIONS (path '{home}/last');
CREATE TABLE visits USING punctuated_xml OPTIONS (path '{home}/visits');
INSERT INTO counts SELECT sid, count(*) AS n FROM v GROUP BY sid;
INSERT INTO near SELECT x.sid, x.at, y.at AS later FROM v AS x JOIN v AS y
    ON x.sid = y.sid AND y.at > x.at AND y.at <= x.at + INTERVAL 20 MINUTES;
INSERT INTO last SELECT x.sid, x.at, y.at AS before FROM v AS x LEFT ASOF JOIN v AS y
    MATCH_CONDITION (x.at > y.at) ON x.sid = y.sid;
INSERT INTO visits SELECT sid, session_window.start AS start, count(*) AS n FROM v
    GROUP BY sid, session_window(at, '10 minutes');
""",
        views,
    ),
}


def night(given: Run, home: Path, number: int) -> None:
    """A document more."""
    (home / "nights").mkdir(parents=True, exist_ok=True)
    text = f"<s xmlns:p='{PUNCT_NS}'>{given.night(number)}</s>"
    (home / "nights" / f"{number}.xml").write_text(text, encoding="utf-8")


def run(session: Session, given: Run, home: Path, *, keep_open: bool) -> None:
    """A night's run."""
    xs.run(xs.inserts_from_sql(session, given.query.format(home=home)), home / "checkpoint", keep_open=keep_open)


def answer(home: Path) -> dict[str, str]:
    """All that was published."""
    return {str(path.relative_to(home)): path.read_text() for path in home.glob("*/slice-*.xml")}


@contextmanager
def again(sound: Path, home: Path) -> Iterator[Path]:
    """The sound one, once more at the same place."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(sound, home)
    yield home


CONF = {"spark.sql.codegen.wholeStage": "false"}


def main() -> None:
    """Does it all, prints a line for each kind of file, and fails if an outcome is none that may be."""
    commit_log.WHOLE_EVERY = 2
    closed_set.HELD, closed_set.TOGETHER = 3, 2
    is_here = "--in-process" in sys.argv
    session = xs.open_session(engine="duckdb") if is_here else open_spark_session("local[2]", CONF)
    names = [name for name in sys.argv[1:] if name != "--in-process"]
    wrong = [line for name in names or RUNS for line in damaged(session, name)]
    sys.exit("\n".join(wrong) or 0)


def damaged(session: Session, name: str) -> list[str]:
    """Damages all files of one of the runs, one by one, and says which outcomes are none that may be."""
    given = RUNS[name]
    scratch = Path(tempfile.mkdtemp(prefix="xmlstream-damage-"))
    home, sound = scratch / "home", scratch / "sound"
    for number in range(1, 5):
        night(given, home, number)
        run(session, given, home, keep_open=True)
    shutil.copytree(home, sound)
    night(given, home, 5)
    run(session, given, home, keep_open=False)
    right = answer(home)
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    files = sorted(path for path in sound.rglob("*") if path.is_file() and "nights" not in path.parts)
    for path in files:
        where = path.relative_to(sound)
        for damage in DAMAGES:
            with again(sound, home):
                damage(home / where)
                night(given, home, 5)
                try:
                    run(session, given, home, keep_open=False)
                    outcome = "right" if answer(home) == right else "WRONG"
                except StateError as error:
                    outcome = "told" if error.hint else "TOLD WITHOUT A HINT"
                except Exception as error:  # noqa: BLE001 - what is counted here
                    outcome = f"RAW {type(error).__name__}"
            outcomes[_kind(where), outcome] += 1
            if outcome not in ("right", "told"):
                wrong.append(f"{name}: {where} {damage.__name__}: {outcome}")
    print(f"{name}:")
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{count:4}  {outcome:6}  {kind}")
    totals = Counter(outcome for _, outcome in outcomes.elements())
    print(f"{sum(totals.values())} cases over {len(files)} files: {dict(totals)}", flush=True)
    shutil.rmtree(scratch, ignore_errors=True)
    return wrong


def _kind(where: Path) -> str:
    """Which kind of file it is: the folder, and of state how it is written."""
    kind = "/".join(where.parts[:2])
    return f"{kind} {where.suffix}" if "state" in where.parts else kind


if __name__ == "__main__":
    main()
