from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.preflight import require_disjoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHIN = [
    ("in", "in"),
    ("in", "in/out"),
    ("in/", "in/../in/out"),
    ("in/*", "in/out"),
    ("in/*.xml", "in"),
    ("in/**", "in/a/b/out"),
    ("in/**/*.xml", "in/a/b"),
    ("*/out/*", "in/out"),
    ("in/*/*/*", "in/out"),
    ("in/out/slice-000000003.xml", "in/out"),
    ("link/*", "in/out"),
]
APART = [
    ("in/bid.xml", "in"),
    ("in/*.xml", "in/out"),
    ("in/bid*.xml", "in"),
    ("in/*", "out"),
    ("in", "out"),
    ("in/*/bid.xml", "in/out"),
    ("in/**/bid.xml", "in/out"),
    ("in[1]/*", "in/out"),
    ("in/*", "in/.out"),
    ("other/*/*", "in/out"),
]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "in[1]", "other"):
        Path(name).mkdir()
    Path("in/bid.xml").write_text("<r/>")
    Path("link").symlink_to("in")


@pytest.mark.parametrize(("path", "output"), WITHIN)
def test_an_output_that_would_be_read_is_refused(path: str, output: str) -> None:
    for where in (path, str(Path.cwd() / path)):
        with pytest.raises(UsageError, match="would read what it writes"):
            require_disjoint([where], ["-", output])


@pytest.mark.parametrize(("path", "output"), APART)
def test_an_output_that_is_not_read_may_be_anywhere(path: str, output: str) -> None:
    for where in (path, str(Path.cwd() / path)):
        require_disjoint([where], ["-", output], checkpoint="state", metrics="m.jsonl")


@pytest.mark.parametrize("path", ["in", "in/*", "in/**", "in/*/*.json", "in/state/s*/*"])
def test_a_checkpoint_in_the_input_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="the checkpoint in/state lies in the input"):
        require_disjoint([path], [], checkpoint="in/state")
    require_disjoint(["in/*.xml", "in/bid.xml", "in/*/bid.xml"], [], checkpoint="in/state")


def test_a_metrics_file_in_the_input_is_refused() -> None:
    for path in ("in", "in/*"):
        with pytest.raises(UsageError, match=r"the metrics file in/m\.jsonl lies in the input"):
            require_disjoint([path], [], metrics="in/m.jsonl")
    require_disjoint(["in/*.xml"], [], metrics="in/m.jsonl")


@pytest.mark.spark
def test_a_query_is_refused_before_anything_is_removed(spark: SparkSession) -> None:
    document = Path("in/slice-000000000.xml")
    document.write_text("<r><r><a>1</a></r></r>")
    query = xs.read(spark, "in/*", schema="a INT", rowTag="r")
    with pytest.raises(UsageError, match="the output in lies in the input"):
        query.run("in", overwrite=True)
    assert document.exists()


@pytest.mark.parametrize(
    ("outputs", "checkpoint", "metrics", "what"),
    [
        (["out"], "./out", None, "the output ./out is the checkpoint, too"),
        (["-", "out"], "state", "out", "the metrics file out is a directory"),
        (["out"], "state", "state", "the metrics file state is a directory"),
        (["out"], "state", "other", "the metrics file other is a directory"),
    ],
)
def test_no_two_things_are_written_to_one_place(
    outputs: list[str], checkpoint: str, metrics: str | None, what: str
) -> None:
    with pytest.raises(UsageError) as refused:
        require_disjoint(["in"], outputs, checkpoint, metrics)
    assert refused.value.what == what
