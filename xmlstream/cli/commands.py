"""The command line: its commands in the order of use, those of one paragraph among them.

Exit codes: 0 done, 1 failed while running, 2 bad usage or query, 3 query unsafe over inputs without an end, 4 not
complete in time (`wait`), 130 and 143 interrupted by SIGINT and SIGTERM, 141 the reader of the output has closed it.
Errors go to standard error.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from rich.console import Console

from xmlstream.cli import interrupts
from xmlstream.cli.change_command import change
from xmlstream.cli.checkpoint_command import checkpoint
from xmlstream.cli.command_line import (
    SETTINGS,
    Command,
    Commands,
    argument,
    name_values,
    option,
    query_text,
    say,
    token_to_operate,
)
from xmlstream.cli.explain_command import explain
from xmlstream.cli.generate import generators
from xmlstream.cli.output_commands import cat, wait
from xmlstream.cli.receive_command import receive
from xmlstream.cli.run_command import run
from xmlstream.cli.say_command import close_for, leave_out
from xmlstream.cli.so_far_command import so_far
from xmlstream.punct_ns.errors import (
    InputError,
    QueryError,
    StateError,
    UnsafeQuery,
    UsageError,
    XmlStreamError,
    format_error,
    on_command_line,
    reason,
)
from xmlstream.secret.command import secret
from xmlstream.sink import standard_output
from xmlstream.sink.standard_output import ReaderGone

if TYPE_CHECKING:
    from xmlstream.plan.nodes import Node
    from xmlstream.runtime.tally import Summary
    from xmlstream.sources.xml.options.source import SourceOptions


def infer(
    files: Annotated[
        list[str] | None, argument("FILE …", "Files, directories or globs, or a URL, s3://…; perhaps compressed.")
    ] = None,
    row_tag: Annotated[
        str | None, option("TAG", "Tag of the tuples; by default the repeated element with the most content.")
    ] = None,
    xsd: Annotated[str | None, option("FILE", "An XML Schema that declares the documents, which are not read.")] = None,
    option: Annotated[list[str] | None, option("NAME=VALUE", "An option of the source, as in CREATE TABLE.")] = None,
    sample: Annotated[str, option("SIZE", "How much of the documents to read, such as 512k or 64m.")] = "4m",
) -> None:
    """Print a CREATE TABLE for documents: columns, types, paths, and guesses at the schemes that they may promise.

    Reads the beginning of the documents. If other elements repeat, too, it names them; --row-tag chooses one.
    """
    from xmlstream.sources.xml.inference.proposal import declared_proposal, proposal
    from xmlstream.sources.xml.options.formats import size

    given = name_values(option, "--option", "NAME=VALUE")
    if not files and xsd is None:
        raise UsageError("there is nothing to infer from", hint="name a FILE of XML, or a schema by --xsd")
    if xsd is not None and len(files or ()) > 1:
        raise UsageError("a schema declares one table", hint="name the directory of its documents, or a glob in quotes")
    inferred = (
        declared_proposal(xsd, files[0] if files else None, row_tag, given)
        if xsd is not None
        else proposal(files or (), row_tag, given, size=size("--sample", sample))
    )
    typer.echo(inferred.create_table())


def monitor(
    checkpoint: Annotated[str, option("DIR", "Where the run's state lives, a directory or s3://….")],
    address: Annotated[str, option("[HOST:]PORT", "Where to serve; port 0 is a free one.", "--at")] = "0",
    metrics: Annotated[str | None, option("FILE", "The run's metrics file, for all of its slices.")] = None,
    operate: Annotated[
        str | None, option("TOKEN", "Who knows it may declare punctuations of silent sources on the page.")
    ] = None,
) -> None:
    """Serve the page of a run from its checkpoint, until interrupted; without --operate it never writes."""
    from xmlstream.monitor.monitor import Monitor, keep_reading, recorded_view
    from xmlstream.runtime.checkpoint.remote_checkpoint import readable
    from xmlstream.runtime.settings import Settings

    if operate is not None and Settings((), checkpoint=checkpoint).is_remote:
        what = f"the checkpoint {checkpoint} is in an object store, where a run does not look for what is declared"
        raise UsageError(what, hint="declare it on the page of the run: xmlstream run … --monitor 0 --operate TOKEN")
    with readable(checkpoint) as (directory, refresh):
        view = recorded_view(directory, metrics)
        server, until = Monitor(address, view, token_to_operate(operate)), threading.Event()
        arguments = directory, view, until, refresh
        reader = threading.Thread(target=keep_reading, args=arguments, name="checkpoint", daemon=True)
        reader.start()
        typer.echo(f"monitor: {server.where}", err=True)
        try:
            server.wait()
        finally:
            until.set()
            server.close()


app = typer.Typer(cls=Commands, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=SETTINGS)


def _version(wanted: bool) -> None:
    if wanted:
        from xmlstream import __version__

        typer.echo(f"xmlstream {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """SQL over XML streams that never end: exact answers while they run, in memory that stays flat.

    `xmlstream COMMAND --help` shows the options of a command, `xmlstream manual` the documentation. The examples read
    what `xmlstream example` writes.
    """


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits."""
    with on_command_line():
        _main()


def _main() -> NoReturn:
    standard_output.take_numbers()
    try:
        with interrupts.raised():
            app()
    except ReaderGone:
        standard_output.forget()
        sys.exit(standard_output.READER_GONE)
    except XmlStreamError as error:
        say(format_error(error))
        sys.exit(_code(error))
    except OSError as error:
        where = f"{error.filename}" if error.filename else "standard output cannot be written"
        say(f"{where}: {reason(error)}")
        standard_output.forget()
        sys.exit(1)
    except interrupts.Interrupted as interrupted:
        say("interrupted")
        sys.exit(interrupted.code)
    sys.exit(0)


def _code(error: XmlStreamError) -> int:
    """The exit code: it depends on who can fix the error."""
    match error:
        case UnsafeQuery():
            return 3
        case UsageError() | QueryError() | StateError():
            return 2
    return 1


MISREAD_HINT = "correct --row-tag, --schema, or a path: --option path.NAME=PATH; of QUERY.sql, its columns and OPTIONS"


def check(
    file: Annotated[
        str,
        argument("FILE", "A file, directory or glob, or its URL, s3://…; or QUERY.sql, for the streams it declares."),
    ],
    schema: Annotated[str | None, option("DDL", 'Its attributes, such as "sid STRING, hour INT".')] = None,
    row_tag: Annotated[str | None, option("TAG", "Tag of its tuples.")] = None,
    schemes: Annotated[str, option("SCHEMES", 'Schemes that it promises, such as "hour; sid, ts prefix".')] = "",
    domains: Annotated[str, option("DOMAINS", 'Domains of its attributes, such as "min 0..59".')] = "",
    punctuate: Annotated[
        str | None, option("RULES", "Rules to try, such as 'order of ts, slack 40s': counts what would be late.")
    ] = None,
    option: Annotated[
        list[str] | None, option("NAME=VALUE", "Another option of the source, as in CREATE TABLE.")
    ] = None,
    define: Annotated[
        list[str] | None, option("NAME=VALUE", "Value of a variable ${NAME} of the query.", "--define", "-D")
    ] = None,
) -> None:
    """Check that streams are grammatical: no tuple comes after a punctuation, or a rule's, that matches it."""
    from xmlstream.operators.punctuate import Punctuate
    from xmlstream.plan.nodes import Scan
    from xmlstream.sql import script as scripts
    from xmlstream.sql.tables.declaration import scan
    from xmlstream.sql.tables.stream_options import punctuated

    given = {"path": file, "rowTag": row_tag, "schemes": schemes, "domains": domains}
    options = {name: value for name, value in given.items() if value} | name_values(option, "--option", "NAME=VALUE")
    if file.endswith(".sql"):
        if len(options) > 1 or schema:
            raise UsageError("a query declares its streams itself", hint="xmlstream check QUERY.sql --punctuate RULES")
        text, name = query_text(file)
        streams = dict(scripts.read(text, name_values(define, "-D", "NAME=VALUE"), name).tables)
    elif schema is None or row_tag is None:
        hint = "--schema DDL --row-tag TAG, which `xmlstream infer FILE` proposes; or check QUERY.sql"
        raise UsageError("check needs the attributes of the tuples, and their tag", hint=hint)
    else:
        streams = {file: scan(file, options, schema)}
    if punctuate and len(streams) > 1 and not any(isinstance(node.operator, Punctuate) for node in streams.values()):
        hint = f"declare punctuate '{punctuate}' in the OPTIONS of one of them, and check {file}"
        raise UsageError(f"--punctuate is for one stream, and there are {', '.join(streams)}", hint=hint)
    for name, node in streams.items():
        source = node
        while isinstance(source.operator, Punctuate):
            source = source.inputs[0]
        if isinstance(source.operator, Scan):
            ruled = punctuated(source, punctuate) if punctuate and (source is not node or len(streams) == 1) else node
            _check(name, source.operator.options) if ruled is source else _check_rules(name, ruled)


def _check(name: str, source: SourceOptions) -> None:
    from xmlstream.punct_ns.errors import counted
    from xmlstream.runtime.likely_mistakes import of_source
    from xmlstream.runtime.preflight import require_found
    from xmlstream.sources.xml.grammar.check import check_grammar

    require_found(source)
    found = check_grammar(source)
    if found.violation is not None:
        raise found.violation.error()
    noticed = of_source(name, found.findings, source)
    if found.findings.saw_nothing:
        raise InputError(f"no tuple or punctuation in {name}: {noticed[0].what}", hint=MISREAD_HINT)
    for finding in noticed:
        say(f"noticed in {finding}")
    tuples, punctuations = found.findings.tuples, sum(found.findings.said.values())
    typer.echo(f"{name} is grammatical: {counted(tuples, 'tuple')}, {counted(punctuations, 'punctuation')}")


def _check_rules(name: str, node: Node) -> None:
    """Runs a source with its rules alone; raises UngrammaticalStream with the number of late tuples."""
    from xmlstream.cli.run import Engines
    from xmlstream.dataclasses import replace
    from xmlstream.operators.punctuate import Punctuate
    from xmlstream.plan.nodes import Node
    from xmlstream.punct_ns.errors import UngrammaticalStream, counted
    from xmlstream.runtime import runner
    from xmlstream.runtime.likely_mistakes import MISREAD
    from xmlstream.runtime.settings import Settings
    from xmlstream.sink.target import Target

    def with_late(node: Node, fate: Literal["fail", "divert"]) -> Node:
        """The source and its rules, which fail with late tuples, or divert them."""
        if not isinstance(node.operator, Punctuate):
            return node
        return Node(replace(node.operator, ungrammatical=fate), (with_late(node.inputs[0], fate),), node.label)

    with Engines() as engines, tempfile.TemporaryDirectory() as there:

        def run(fate: Literal["fail", "divert"]) -> Summary:
            settings = Settings((Target.of(f"{there}/{fate}"),), keep_open=True)
            return engines.first_able(lambda session: runner.run(session, with_late(node, fate), settings))

        try:
            done = run("fail")
        except UngrammaticalStream as first:
            others = run("divert").tuples_out
            letters = Path(there).glob("divert/_dead_letters/punctuate*")
            late = sum(len(each.read_bytes().splitlines()) for each in letters)
            what = f"{late} of {counted(late + others, 'tuple')} would be late: {first.what}"
            raise UngrammaticalStream(f"{name}: {what}", where=first.where, hint="--punctuate tries others") from None
    for finding in (each for each in done.findings if each.kind not in MISREAD):  # those are logged
        say(f"noticed in {finding}")
    if not done.tuples_out:
        raise InputError(f"no tuple in {name}", hint=MISREAD_HINT)
    typer.echo(f"{name} is grammatical: {counted(done.tuples_out, 'tuple')}, and none would be late")


def example(
    names: Annotated[
        list[str] | None, argument("NAME", "Names, such as warehouse or nexmark_q9; all examples by default.")
    ] = None,
    out: Annotated[Path, option("DIR", "Directory to write to.")] = Path("data"),
) -> None:
    """Write the queries and small inputs of the documentation, to try its commands."""
    from xmlstream.cli.manual import write_examples

    written = write_examples(names or [], out)
    typer.echo("\n".join(map(str, written)) if names else f"{out}: {len(written)} files")


def prepare() -> None:
    """Make later starts on this machine faster: archive Java's loaded classes, once, for a minute.

    Also compiles the Python modules of xmlstream and its dependencies.

    A start spends most of its time in Java, which loads and verifies Spark's classes. This command runs some queries
    over a small generated stream, writes the loaded classes to an archive of about 200 MB, and tries a short run with
    it. Every later `xmlstream run` and every session on this machine uses the archive. After a change of Java or Spark
    the archive is ignored, until you run this command again. If you interrupt the command, the former archive stays in
    use.

    The archive is in the virtual environment, or else in ~/.cache/xmlstream. The environment variable
    XMLSTREAM_CLASS_ARCHIVES names another directory; if it is empty, no archive is used. You can delete the archive at
    any time.
    """
    from xmlstream.cli.prepare import archive_classes

    made = archive_classes(Console(stderr=True, highlight=False))
    typer.echo(made or "another `xmlstream prepare` has made the archive")


def manual(
    topic: Annotated[str | None, argument("TOPIC", "The page; without it, a list of all.")] = None,
    html: Annotated[Path | None, option("DIR", "Write all pages into this directory as HTML instead.")] = None,
) -> None:
    """Show a page of the documentation in a pager; if the output is not a terminal, print it as Markdown."""
    from xmlstream.cli import manual as pages

    page = pages.page_of_topic(topic) if topic else None
    if html is not None:
        typer.echo(pages.write_html(html, page))
    elif page is not None:
        pages.show(pages.printed(page))
    else:
        typer.echo(pages.contents())


IN_ORDER_OF_USE: dict[str, dict[Callable[..., None] | typer.Typer, str]] = {
    "From documents to an answer": {
        infer: "xmlstream infer data/sensor1.xml",
        check: "xmlstream check data/sensor1.xml --schema 'hour INT' --row-tag tempdata",
        explain: "xmlstream explain data/warehouse.sql -D SENSORS=data --follow",
        run: "xmlstream run data/warehouse.sql -D SENSORS=data -o hottest --checkpoint state",
        cat: "xmlstream cat hottest",
        wait: "xmlstream wait hottest --where hour=5 --timeout 10m",
        change: "xmlstream change data/warehouse.sql -D SENSORS=data --checkpoint state",
    },
    "Queries and streams to try": {
        example: "xmlstream example",
        generators: "xmlstream generate sensors --out sensors",
    },
    "Live": {
        receive: "xmlstream receive tcp://localhost:9000 --into feed --row-tag tempdata",
        monitor: "xmlstream monitor --checkpoint state",
        close_for: "xmlstream say state sensor2 '<*, [13,20], *, *>'",
        leave_out: "xmlstream leave-out state sensor2",
        so_far: "xmlstream so-far state --where 'hour = 17'",
        checkpoint: "xmlstream checkpoint state --verify",
    },
    "Besides": {
        secret: "xmlstream secret data/sensor1.xml --row-tag tempdata --time hour --value currtmp --size 2 --slide 1",
        prepare: "xmlstream prepare",
        manual: "xmlstream manual sources",
    },
}
"""All commands in groups, each with an example."""

for _group, _commands in IN_ORDER_OF_USE.items():
    for _command, _example in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name="generate", rich_help_panel=_group, epilog=_example)
        else:
            name = _example.split()[1]
            app.command(name, cls=Command, rich_help_panel=_group, epilog=_example)(_command)
