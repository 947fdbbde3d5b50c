"""Warehouse sensors that report the temperature at fixed intervals, in the XML of Tucker et al. 2003, §7.1.

Each sensor is one document: `tempdata` elements in the order of their time, with punctuations on the sensor's own
stream among them. The output is determined by the seed, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, pairwise, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators.live import Line, publisher, send_live, write_live

pc: Any = pyarrow.compute

HOURS_AT_ONCE = 500
"""The number of hours whose reports are made at once; limits the memory, and does not change the output."""


def write_sensors(
    directory: str | Path,
    sensors: int = 2,
    hours: int = 60,
    punctuations_per_hour: int = 1,
    reports_per_hour: int = 60,
    seed: int = 0,
    rate: float | None = None,
) -> list[Path]:
    """Writes `sensor1.xml`, `sensor2.xml`, … to a directory and returns their paths.

    Args:
        directory: Created if it does not exist; files with these names are replaced.
        sensors: The number of sensors; they are named S1, S2, ….
        hours: The number of hours that each of them reports: 0, 1, 2, ….
        punctuations_per_hour: k of them divide the hour's minutes into k parts: the j-th follows the reports of the
            j-th part and closes it; the last one closes the whole hour. 0 for none.
        reports_per_hour: Reports per sensor and hour, spread over its 60 minutes.
        seed: Determines the temperatures.
        rate: Reports per second of all sensors in sum, for a stream that is written live; None for writing at once.

    Raises:
        UsageError: A number is out of range: no sensor, a negative number, more than 60 punctuations per hour.
    """
    _require_sense(sensors, hours, punctuations_per_hour, reports_per_hour, 1 if rate is None else rate)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.xml" for name in _names(sensors)]
    streams = [
        chain([(0, _HEAD)], _hours(number, hours, punctuations_per_hour, reports_per_hour, seed), [(0, _TAIL)])
        for number in range(1, sensors + 1)
    ]
    if rate is None:
        for path, stream in zip(paths, streams, strict=True):
            with path.open("wb") as file:
                file.writelines(block for _, block in stream)
    else:
        write_live(paths, _all_due(streams, rate))
    return paths


def publish_sensors(
    address: str,
    sensors: int = 2,
    hours: int = 60,
    punctuations_per_hour: int = 1,
    reports_per_hour: int = 60,
    seed: int = 0,
    rate: float = 60.0,
) -> None:
    """Sends the lines of `write_sensors` as messages, live, to `sensor1`, `sensor2`, … below an address.

    The address is one of `xmlstream.sources.generators.live.publisher`, the other arguments are those of
    `write_sensors`; `rate` is in reports per second of all sensors in sum.

    Raises:
        UsageError: A number is out of range, or the address is not supported.
        InputError: There is no answer at the address.
    """
    _require_sense(sensors, hours, punctuations_per_hour, reports_per_hour, rate)
    streams = [_hours(number, hours, punctuations_per_hour, reports_per_hour, seed) for number in range(1, sensors + 1)]
    with publisher(address, _names(sensors)) as outs:
        send_live(outs, _all_due(streams, rate))


def _require_sense(sensors: int, hours: int, punctuations: int, reports: int, rate: float) -> None:
    for name, number, low, high in (
        ("sensors", sensors, 1, None),
        ("hours", hours, 0, None),
        ("punctuations per hour", punctuations, 0, 60),
        ("reports per hour", reports, 0, None),
        ("reports a second", rate, 1e-6, None),
    ):
        if number < low or (high is not None and number > high):
            hint = f"give {low:g} " + (f"to {high}" if high else "or more")
            raise UsageError(f"the number of {name} cannot be {number}", hint=hint)


def _names(sensors: int) -> list[str]:
    return [f"sensor{number}" for number in range(1, sensors + 1)]


def _all_due(streams: Sequence[Iterator[tuple[int, bytes]]], rate: float) -> Iterator[Line]:
    """Yields the lines of all sensors in the order in which they are due, `rate` reports per second."""
    due = [_due(number, _lines(stream), rate / len(streams)) for number, stream in enumerate(streams)]
    return merge(*due, key=itemgetter(0))


_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<readings xmlns:punct="{PUNCT_NS}">\n'.encode()
_TAIL = b"</readings>\n"


def _hours(sensor: int, hours: int, punctuations: int, reports: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Yields blocks of the document: the reports of one part of an hour, its punctuation; and the number of reports."""
    random = np.random.default_rng([seed, sensor])
    minutes = np.arange(reports) * 60 // max(reports, 1)
    ends = [60 * part // max(punctuations, 1) for part in range(1, max(punctuations, 1) + 1)]
    cuts = [0, *np.searchsorted(minutes, ends).tolist()]
    for first in range(0, hours, HOURS_AT_ONCE):
        those = np.arange(first, min(first + HOURS_AT_ONCE, hours))
        text, offsets = _reports(sensor, np.repeat(those, reports), np.tile(minutes, len(those)), random)
        for number, hour in enumerate(those.tolist()):
            for part, (start, end) in enumerate(pairwise(cuts)):
                low, high = number * reports + start, number * reports + end
                block = text[offsets[low] : offsets[high]]
                if punctuations:
                    block += _punctuation(hour, ends[part - 1] if part else 0, ends[part], part + 1 == punctuations)
                yield end - start, block


def _reports(
    sensor: int, hour: npt.NDArray[np.int64], minute: npt.NDArray[np.int64], random: np.random.Generator
) -> tuple[bytes, npt.NDArray[np.int32]]:
    """Returns the reports as text, one per line, with the offset of each and of the end."""
    if not len(hour):
        return b"", np.zeros(1, np.int32)
    tenths = 700 + np.rint(80 * np.sin((hour + minute / 60 - 9) * (np.pi / 12))).astype(np.int64)
    tenths += random.integers(-25, 26, len(hour))
    columns = pc.binary_join_element_wise(
        f"<tempdata><sid>S{sensor}</sid><hour>",
        _text(hour),
        "</hour><min>",
        _text(minute),
        "</min><currtmp>",
        _text(tenths // 10),
        ".",
        _text(tenths % 10),
        "</currtmp></tempdata>\n",
        "",
    )
    _, offsets, text = columns.buffers()
    return text.to_pybytes(), np.frombuffer(offsets, np.int32, len(hour) + 1)


def _text(numbers: npt.NDArray[np.int64]) -> Any:
    return pa.array(numbers).cast(pa.string())


def _punctuation(hour: int, low: int, high: int, whole: bool) -> bytes:
    minutes = "*" if whole else str(low) if high - low == 1 else f"[{low},{high - 1}]"
    leaves = f"<sid>*</sid><hour>{hour}</hour><min>{minutes}</min><currtmp>*</currtmp>"
    return f"<punct:tempdata>{leaves}</punct:tempdata>\n".encode()


def _lines(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Splits blocks into lines, each with the number of reports in it: 1 or 0."""
    for reports, block in blocks:
        yield from zip(chain(repeat(1, reports), repeat(0)), block.splitlines(keepends=True), strict=False)


def _due(number: int, lines: Iterator[tuple[int, bytes]], rate: float) -> Iterator[Line]:
    """Yields the lines of one sensor's file, `rate` reports per second."""
    for total, line in accumulate(lines, lambda done, line: (done[0] + line[0], line[1]), initial=(0, b"")):
        if line:
            yield total / rate, number, line
