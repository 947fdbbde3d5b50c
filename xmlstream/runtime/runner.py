"""The start of a run: its steps, from the settings to the loop over the slices, in the order of `launch`.

One reader reads all sources, so that a slice has one number. The tasks that parse the tuples stage them, and
`Execution` does the rest. `launched` has what can be done with a query that was started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from xmlstream.operators.expressions.depth import at_any_depth
from xmlstream.plan.nodes import Node, results
from xmlstream.plan.written_plan import encoded
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.change.continued import leaving_out, note
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint, Mirror
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.recovery import Recovered, recover
from xmlstream.runtime.checkpoint.remote_checkpoint import mirror_at
from xmlstream.runtime.checkpoint.same_query import OtherQuery, rates_in
from xmlstream.runtime.launched import Handle, Launched
from xmlstream.runtime.loop.driving import WORK, driver, is_apart, readings, require_reached
from xmlstream.runtime.loop.execution import Execution
from xmlstream.runtime.loop.feeds import Feeds
from xmlstream.runtime.loop.query_clocks import Clocks, clocks_of
from xmlstream.runtime.metrics import metrics_at
from xmlstream.runtime.preflight import require_ready
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.tally import Summary, Tally
from xmlstream.runtime.watching import Several, Watched, reporting_failure
from xmlstream.session.engines import engine_of, spark_of
from xmlstream.session.java_process import MemoryGauge
from xmlstream.session.spark_errors import quiet_failures
from xmlstream.sink.sink import SliceSink
from xmlstream.sources.xml.options.reading import Reading

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.optimizer.join_plans import JoinRegion
    from xmlstream.session.engines import Session


def run(session: Session, root: Node, settings: Settings) -> Summary:
    """Runs the query to the end of its input.

    Raises:
        InputError: The input is malformed or ungrammatical, and the source's mode does not allow that.
        StateError: The checkpoint or an output belongs to another query.
    """
    with quiet_failures(session):
        launched = launch(session, root, settings)
        with launched.progressing():
            return launched.wait()


def start(session: Session, root: Node, settings: Settings) -> Handle:
    """Starts the query, which runs until it is stopped; returns a handle.

    Raises:
        StateError: The checkpoint or an output belongs to another query, or the query was closed.
    """
    quiet = ExitStack()
    quiet.enter_context(quiet_failures(session))
    try:
        launched = launch(session, root, settings, quiet.close)
        if launched.query is None:
            launched.stop()
            raise StateError(f"the query of checkpoint {settings.checkpoint} was closed: its input has ended for good")
    except BaseException:
        quiet.close()
        raise
    return Handle(launched, launched.query, session, settings)


@at_any_depth
def launch(session: Session, root: Node, settings: Settings, on_end: Callable[[], None] = lambda: None) -> Launched:
    """Starts the query, for `run` and `start`; `on_end` is called in its thread when it has ended.

    Raises:
        StateError, UsageError, QueryError: The query cannot be started with these settings.
    """
    with reporting_failure(settings.watcher), ExitStack() as opened:
        require_ready(root, settings)
        engine, mirror = engine_of(session, settings.engine), _mirror(session, settings, opened)
        recovered = _recovered(mirror, root, settings, engine)
        opened.callback(recovered.end)
        checkpoint = recovered.checkpoint
        engine.spill_to(checkpoint.store.path(WORK))

        checkpoint.note_plan(encoded(root))
        note(root, settings.targets, is_fresh=settings.overwrite and checkpoint.latest is None)

        metrics = metrics_at(settings.metrics) if settings.metrics else None
        picture = None if settings.picture is None else partial(settings.picture, root)
        tally = Tally(metrics, settings.on_slice, picture, leaving_out(root))
        watcher = Several(settings.watcher, settings.alerts)
        watcher.begun(Watched(root, settings.follow, checkpoint.store, recovered.letters, settings.name, engine))

        def committed(record: Commit) -> None:
            recovered.publish_letters()
            is_restored = record is checkpoint.latest
            (tally.restore if is_restored else tally.slice)(record.report)
            (watcher.restored if is_restored else watcher.committed)(record)

        feeds = Feeds.of(root, checkpoint.store, settings)
        readers = readings(root, checkpoint, settings, feeds)
        execution, sinks = built(engine, root, readers, settings, recovered, committed)
        execution.memory, execution.query = (
            MemoryGauge(partial(spark_of, session)).bytes,
            settings.name or execution.query,
        )
        launched = Launched(settings, recovered, execution, sinks, tally, watcher)
        if not execution.closed:
            loop = driver(session, readers, execution, checkpoint, settings, feeds)
            launched.begin(loop, on_end)
        opened.pop_all()
    return launched


def _mirror(session: Session, settings: Settings, opened: ExitStack) -> Mirror:
    """Where the commits of the checkpoint count; the workers of the session reach that place."""
    directory = settings.make_checkpoint()
    opened.callback(settings.remove_checkpoint, directory)
    is_shared = is_apart(session, directory)
    mirror = mirror_at(settings.checkpoint, directory, is_shared=is_shared)
    require_reached(session, mirror, is_apart=is_shared)
    return mirror


def _recovered(mirror: Mirror, root: Node, settings: Settings, engine: Engine) -> Recovered:
    """The checkpoint as the last commit left it; that of another query is changed, if that is wanted."""
    change, overwrite, moved = None, settings.overwrite, settings.moved
    if settings.change or settings.undo or (settings.adapt and rates_in(root)):
        from xmlstream.runtime.change.changed_checkpoint import changed

        change = partial(changed, root=root, engine=engine, settings=settings)
    try:
        return recover(mirror, root, settings.targets, engine.zone, overwrite=overwrite, moved=moved, change=change)
    except OtherQuery as other:
        from xmlstream.runtime.change.changed_checkpoint import way_on

        raise StateError(other.what, hint=way_on(mirror.folder, root, settings.targets, engine.zone)) from None


def _lacking(root: Node, region: JoinRegion) -> str:
    """What keeps a region's tuples from being joined in another way, in words."""
    from xmlstream.runtime.change.adapted import lacking

    return lacking(root, region)


def built(
    engine: Engine,
    root: Node,
    readers: Sequence[Reading],
    settings: Settings,
    recovered: Recovered,
    committed: Callable[[Commit], None],
) -> tuple[Execution, list[SliceSink]]:
    """What computes the slices of a run, from the last commit on, and what takes each result.

    `committed` is called with each commit, and at once with the last one of an earlier run.
    """
    checkpoint, sinks = recovered.checkpoint, list[SliceSink]()
    with ExitStack() as opened:
        for number, (target, node) in enumerate(zip(settings.targets, results(root), strict=True)):
            home = recovered.home(number, engine, overwrite=settings.overwrite)
            sinks.append(target.sink(node.schema, node.schemes, home))
            opened.callback(sinks[-1].close)
        _publish_again(sinks, checkpoint)
        letters = recovered.dead_letters
        limits = settings.limit, settings.patience
        execution = Execution(engine, root, checkpoint, sinks, committed, letters, *limits)
        if settings.is_to_go_on and not settings.as_written:
            execution.joins.advises = _lacking
        execution.read_with = {stream.name: source.name for source in readers for stream in source.streams}
        if clocks_of(root):
            execution.punctuate_by(Clocks(root, readers, checkpoint.store, settings.tick))
        opened.pop_all()  # the end of the run closes them
    return execution, sinks


def _publish_again(sinks: Sequence[SliceSink], checkpoint: Checkpoint) -> None:
    """Publishes the documents of the last commit, in case the process died before it published them."""
    outputs = checkpoint.latest.outputs if checkpoint.latest is not None else [None] * len(sinks)
    for sink, made in zip(sinks, outputs, strict=True):
        if made is not None:
            sink.publish(made)
