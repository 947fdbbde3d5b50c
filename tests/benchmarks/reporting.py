"""The benchmark's report: a table in Markdown, a JSON file, and what is slower than in the one that is committed."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.measuring import ROUNDS, SCALE, Measure

LAST = Path(__file__).with_name("last.json")
"""The committed numbers, which `make bench KEEP=1` replaces."""

OUT = Path("out/bench")
TOLERATED = 1.15
"""A measure is slower if it is worse by more than this factor."""


def write(measures: Sequence[Measure], seconds: float, out: Path = OUT, last: Path = LAST) -> str:
    """Writes `bench.md` and `bench.json`, and returns the text of the former; `seconds` are those that it all took."""
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rounds": ROUNDS,
        "scale": SCALE,
        "seconds": round(seconds),
        "measures": [measure.json() for measure in measures],
    }
    before = json.loads(last.read_text(encoding="utf-8")) if last.exists() else None
    text = "\n".join([*_heading(found), "", *table(found["measures"]), "", *comparison(found, before), ""])
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (out / "bench.md").write_text(text, encoding="utf-8")
    return text


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    import pyspark

    cpu = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpu.read_text(encoding="utf-8")) if cpu.exists() else None
    java = Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java"
    said = _said(str(java) if java.exists() else "java", "-version")
    changed = bool(_said("git", "status", "--porcelain", "--untracked-files=no").strip())
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "java": said.splitlines()[0] if said else "unknown",
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "commit": (_said("git", "rev-parse", "--short", "HEAD").strip() or "unknown")
        + (" and changes" if changed else ""),
    }


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr) if done.returncode == 0 else ""


def _heading(found: Mapping[str, Any]) -> list[str]:
    on = found["machine"]
    return [
        f"Measured on {found['date']}, commit {on['commit']}: {on['cpu']}, {on['cores']} cores, "
        f"{on['memory_gib']} GiB, {on['system']}; {on['java']}; Spark {on['spark']}, Python {on['python']}.",
        f"Medians of {found['rounds']} rounds where nothing else is said; the ratio is ours over the contender's. "
        f"It all took {found['seconds'] / 60:.1f} minutes."
        + ("" if found["scale"] == 1 else f" Inputs of {found['scale']:g} of their size: no target is meant for them."),
    ]


def table(measures: Sequence[Mapping[str, Any]]) -> list[str]:
    """The measures as lines of Markdown."""
    lines = [
        "| measure | ours | contender | | ratio | target | met |",
        "| --- | ---: | --- | ---: | ---: | --- | --- |",
    ]
    for one in measures:
        theirs = "" if one["theirs"] is None else number(one["theirs"])
        ratio = "" if one["ratio"] is None else f"{one['ratio']:.2f}"
        cells = [
            one["name"] + _rounds(one["our_rounds"]),
            f"{number(one['ours'])} {one['unit']}",
            one["contender"] + _rounds(one["their_rounds"]) if one["contender"] else "",
            theirs,
            ratio,
            _bounds(one),
            {True: "yes", False: "**no**", None: ""}[one["met"]],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"- {one['name']}: {one['note']}" for one in measures if one["note"]]
    return [*lines, "", *dict.fromkeys(notes)] if notes else lines


def _rounds(those: Sequence[float]) -> str:
    return "" if len(those) == ROUNDS else f" ({len(those)} round{'s' * (len(those) != 1)})"


def _bounds(one: Mapping[str, Any]) -> str:
    sign = "≥" if one["better"] == "more" else "≤"
    bounds = [f"{sign} {number(one['target'])}"] if one["target"] is not None else []
    if one["ratio_target"] is not None:
        bounds.append(f"ratio {sign} {one['ratio_target']:g}")
    return ", ".join(bounds)


def number(value: float) -> str:
    """A number to three places that count, thousands apart."""
    if abs(value) >= 1000:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.3g}"


def comparison(found: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """What is worse than it was, and by what it was compared."""
    if before is None:
        return ["There are no committed numbers to compare with: `make bench KEEP=1` makes these the ones."]
    if found["scale"] != before["scale"]:
        return [f"Not compared with the committed numbers, which are of scale {before['scale']:g}."]
    known = {(one["name"], one["contender"]): one for one in before["measures"] if one["is_compared"]}
    worse = []
    compared = 0
    for one in found["measures"]:
        was = known.get((one["name"], one["contender"]))
        if was is None or not one["is_compared"]:
            continue
        compared += 1
        by, unit = ("ratio", "") if one["ratio"] and was["ratio"] else ("ours", f" {one['unit']}")
        factor = was[by] / one[by] if one["better"] == "more" else one[by] / was[by]
        if factor > TOLERATED:
            beside = f", beside {one['contender']}" if one["contender"] else ""
            what = f"{'ratio ' if by == 'ratio' else ''}{number(was[by])} → {number(one[by])}{unit}"
            worse.append(f"- {one['name']}{beside}: {what}, worse by {100 * (factor - 1):.0f} %")
    missing = len(known.keys() - {(one["name"], one["contender"]) for one in found["measures"]})
    how = (
        f"Compared with the numbers of {before['date']}, commit {before['machine']['commit']}: {compared} measures, by "
        "their ratios where there is a contender, since machines differ, else by their absolute numbers"
    )
    how += f"; {missing} committed ones were not measured." if missing else "."
    over = f"more than {100 * (TOLERATED - 1):.0f} %"
    return [how, "", *([f"Slower by {over}:", "", *worse] if worse else [f"Nothing is slower by {over}."])]
