"""The damage campaign: each file of a checkpoint and its outputs in turn truncated, emptied, deleted, a bit flipped.

    .ci/java .venv/bin/python -m tests.campaigns.damage

Whatever was damaged, the next run either gives the right answer or stops with one sentence that says what to do. It
takes some ten minutes on two cores. `tests/xmlstream/test_checkpoint.py` does the same in seconds, without Spark.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import xmlstream as xs
from punct_ns.errors import StateError
from punct_ns.xml_form import PUNCT_NS
from tests.harness.file_damage import DAMAGES
from xmlstream.runtime import commit_log
from xmlstream.session.spark_session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
CREATE TABLE s (a INT, b INT) USING punctuated_xml OPTIONS (path '{home}/nights', rowTag 't', schemes 'a');
CREATE TABLE counts USING punctuated_xml OPTIONS (path '{home}/counts');
CREATE TABLE pairs USING punctuated_xml OPTIONS (path '{home}/pairs');
INSERT INTO counts SELECT a, count(*) AS n FROM s GROUP BY a;
INSERT INTO pairs SELECT x.a, x.b, y.b AS c FROM s AS x JOIN s AS y ON x.a = y.a WHERE x.b < y.b;
"""


def night(home: Path, number: int) -> None:
    """A document more: it closes one group, and leaves others open."""
    (home / "nights").mkdir(parents=True, exist_ok=True)
    rows = "".join(f"<t><a>{a}</a><b>{number}</b></t>" for a in range(number, number + 3))
    said = f"<p:t><a>{number}</a><b>*</b></p:t>"
    (home / "nights" / f"{number}.xml").write_text(f"<s xmlns:p='{PUNCT_NS}'>{rows}{said}</s>", encoding="utf-8")


def run(spark: SparkSession, home: Path, *, keep_open: bool) -> None:
    """A night's run."""
    xs.run(xs.inserts_from_sql(spark, QUERY.format(home=home)), home / "checkpoint", keep_open=keep_open)


def answer(home: Path) -> dict[str, str]:
    """All that was published."""
    return {str(path.relative_to(home)): path.read_text() for path in home.glob("*/slice-*.xml")}


@contextmanager
def again(sound: Path, home: Path) -> Iterator[Path]:
    """The sound one, once more at the same place."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(sound, home)
    yield home


def main() -> None:
    """Does it all, prints a line for each kind of file, and fails if an outcome is none that may be."""
    commit_log.WHOLE_EVERY = 2
    spark = open_session("local[2]", {"spark.sql.codegen.wholeStage": "false"})
    scratch = Path(tempfile.mkdtemp(prefix="xmlstream-damage-"))
    home, sound = scratch / "home", scratch / "sound"
    for number in range(1, 5):
        night(home, number)
        run(spark, home, keep_open=True)
    shutil.copytree(home, sound)
    night(home, 5)
    run(spark, home, keep_open=False)
    right = answer(home)
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    files = sorted(path for path in sound.rglob("*") if path.is_file() and "nights" not in path.parts)
    for path in files:
        name = str(path.relative_to(sound))
        for damage in DAMAGES:
            with again(sound, home):
                damage(home / name)
                night(home, 5)
                try:
                    run(spark, home, keep_open=False)
                    outcome = "right" if answer(home) == right else "WRONG"
                except StateError as error:
                    outcome = "told" if error.hint else "TOLD WITHOUT A HINT"
                except Exception as error:  # noqa: BLE001 - what is counted here
                    outcome = f"RAW {type(error).__name__}"
            outcomes["/".join(name.split("/")[:2]), outcome] += 1
            if outcome not in ("right", "told"):
                wrong.append(f"{name} {damage.__name__}: {outcome}")
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{count:4}  {outcome:6}  {kind}")
    totals = Counter(outcome for _, outcome in outcomes.elements())
    print(f"{sum(totals.values())} cases over {len(files)} files: {dict(totals)}")
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
