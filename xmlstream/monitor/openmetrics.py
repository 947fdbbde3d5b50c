"""The totals of a run as Prometheus reads them, in the text of OpenMetrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from xmlstream.runtime.totals import BOUNDS, Totals

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def openmetrics(totals: Totals, state: str) -> bytes:
    """The metrics of a run whose state is `running`, `ended` or `failed`."""
    registry = CollectorRegistry()
    registry.register(_Collector(lambda: _metrics(totals, state)))
    return bytes(generate_latest(registry))  # type: ignore[no-untyped-call]


class _Collector(Collector):
    def __init__(self, metrics: Callable[[], Iterator[Metric]]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Them."""
        yield from self._metrics()


def _metrics(totals: Totals, state: str) -> Iterator[Metric]:
    told = (
        ("slices", "Slices that were committed.", totals.slices),
        ("items_in", "Tuples and punctuations of all sources.", totals.items_in),
        ("tuples_out", "Tuples of all results.", totals.tuples_out),
        ("items_set_aside", "Items that went no further: malformed, or ungrammatical.", totals.set_aside),
    )
    for name, what, value in told:
        yield CounterMetricFamily(f"xmlstream_{name}", what, value)
    counts = list(accumulate(totals.times))
    buckets = [(str(bound), float(count)) for bound, count in zip((*BOUNDS, "+Inf"), counts, strict=True)]
    what = "Time from a slice's arrival to its commit."
    yield HistogramMetricFamily("xmlstream_slice_seconds", what, buckets=buckets, sum_value=totals.seconds)
    yield GaugeMetricFamily("xmlstream_up", "Whether the query runs.", float(state == "running"))
    yield GaugeMetricFamily("xmlstream_closed", "Whether its input has ended.", float(totals.last.get("closed", False)))
    yield GaugeMetricFamily("xmlstream_exact", "Whether no tuple was overdue.", float(totals.last.get("exact", True)))
    yield GaugeMetricFamily("xmlstream_findings", "What was noticed.", float(len(totals.last.get("findings", ()))))
    if totals.time:
        when = datetime.fromisoformat(totals.time).timestamp()
        yield GaugeMetricFamily("xmlstream_last_slice_timestamp_seconds", "When the last slice was committed.", when)
    memory = totals.last.get("memory", {})
    if "java_heap" in memory:
        what = "What Java has in use of its heap."
        yield GaugeMetricFamily("xmlstream_java_heap_bytes", what, float(memory["java_heap"]))
    what = "What processes on the driver's machine have in memory."
    resident = GaugeMetricFamily("xmlstream_resident_memory_bytes", what, labels=["process"])
    for name in ("driver", "java", "workers"):
        if name in memory:
            resident.add_metric([name], memory[name])
    yield resident
    for name, what in (
        ("tuples_in", "Tuples that came to an operator."),
        ("tuples_out", "Tuples that an operator handed on."),
        ("purged", "Kept tuples that were purged."),
        ("overdue", "Of these, tuples that were kept for longer than purge_after allows."),
        ("punctuations_in", "Punctuations that came to an operator."),
        ("punctuations_out", "Punctuations that an operator handed on."),
    ):
        flows = CounterMetricFamily(f"xmlstream_operator_{name}", what, labels=["operator"])
        for operator, flow in totals.flows.items():
            flows.add_metric([operator], flow[name])
        yield flows
    for field, name, what in (
        ("kept", "kept_tuples", "Tuples that an operator keeps."),
        ("punctuations_held", "held_punctuations", "Ranges and values that an operator's punctuations hold."),
    ):
        gauge = GaugeMetricFamily(f"xmlstream_operator_{name}", what, labels=["operator"])
        for report in totals.last.get("operators", ()):
            gauge.add_metric([report["name"]], report[field])
        yield gauge
