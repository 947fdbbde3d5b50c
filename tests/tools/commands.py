"""Runs the examples of pages in their order with the commands of an environment, and compares what they print.

python -m tests.tools.commands out/wheel/bin README.md      those of a page (`make try`)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.harness.pages import EXAMPLES, Block, blocks

# Its session starts while the first commands run; those who open one get it, and so do later runs of the command.
# A command writes where the shell that asked for it would: `/proc/PID/fd` has the two places.
IN_TURN = r"""
import os
import sys
import xmlstream
from xmlstream.cli.commands import main

xmlstream.open_session()
names, mine = {}, [os.dup(number) for number in (1, 2)]


def write_to(places):
    sys.stdout.flush()
    sys.stderr.flush()
    for number, place in zip((1, 2), places):
        os.dup2(place, number)


while block := "".join(iter(lambda: sys.stdin.read(1) or "\0", "\0")):
    if block.startswith("xmlstream\n"):
        _, out, err, *arguments = block.splitlines()
        places = [os.open(place, os.O_WRONLY | os.O_APPEND) for place in (out, err)]
        sys.argv = ["xmlstream", *arguments]
        write_to(places)
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            write_to(mine)
            for place in places:
                os.close(place)
        print(code, end="\0", flush=True)
    else:
        exec(block, names)
        print(end="\0", flush=True)
"""

# Where the numbers of a process's files are; where it is not, each command is a process of its own.
PLACES = Path("/proc/self/fd")

# In a shell, the commands as that process runs them, by the numbers of its standard input and output. What follows its
# input in the background, or reads standard input, is a process of its own.
RUN_IN_TURN = r"""
xmlstream() {
    if [ "$BASHPID" != "$$" ] && [[ " $* " = *" --follow "* ]]; then exec xmlstream "$@"; fi
    if [ "${2:-}" = - ] || [[ " run infer check explain cat " != *" $1 "* ]]; then command xmlstream "$@"; return; fi
    local code out err mine=/proc/$BASHPID/fd
    exec {out}>&1 {err}>&2
    { printf '%s\n' xmlstream "$mine/$out" "$mine/$err" "$@"; printf '\0'; } >&"$ASKED"
    IFS= read -r -d '' code <&"$ANSWERS"
    exec {out}>&- {err}>&-
    return "$code"
}
"""


def run(pages: Iterable[str], commands: Path, directory: Path, environment: Mapping[str, str]) -> None:
    """Runs them in a directory with the commands of an environment; raises where one fails or prints something else."""
    environment = {**environment, "PATH": f"{commands}{os.pathsep}{environment['PATH']}"}
    errors = directory / "errors.txt"
    with errors.open("w", encoding="utf-8") as stderr:
        python = subprocess.Popen(
            [commands / "python", "-c", IN_TURN], cwd=directory, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    asked, answers = python.stdin, python.stdout
    assert asked
    assert answers
    numbers = {"ASKED": asked.fileno(), "ANSWERS": answers.fileno()}
    before = ""  # the first run is a process of its own, as the users' are
    with python:
        for block, shown in steps(pages):
            if block.language == "sh":
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", before + block.text], cwd=directory, capture_output=True,
                    env=environment | {name: str(number) for name, number in numbers.items()},
                    pass_fds=tuple(numbers.values()), text=True, check=False,
                )  # fmt: skip
                assert done.returncode == 0, (block.text, done.stderr, errors.read_text(encoding="utf-8"))
                assert "noticed in" not in done.stderr, (block.text, done.stderr)
                if "xmlstream run" in block.text and PLACES.exists():
                    before = RUN_IN_TURN
                printed = done.stdout
            else:
                asked.write(block.text + "\0")
                asked.flush()
                printed = "".join(iter(lambda: answers.read(1) or "\0", "\0"))
            # Between two punctuations the order of tuples is free.
            lines = shown.text.splitlines() if shown else []
            assert sorted(printed.splitlines()[-len(lines) :] if lines else []) == sorted(lines), block.text
        asked.write("\0")
    assert python.returncode == 0, errors.read_text(encoding="utf-8")
    assert "noticed in" not in errors.read_text(encoding="utf-8")


def steps(pages: Iterable[str]) -> list[tuple[Block, Block | None]]:
    """What is run, and what stands right below it, which is what it prints."""
    pairs = []
    for page in pages:
        found = blocks(page)
        for block, after in zip(found, [*found[1:], None], strict=True):
            is_below = after is not None and after.line - block.line == block.text.count("\n") + 3
            if block.is_run:
                pairs.append((block, after if is_below else None))
    return pairs


def main() -> None:
    """Runs the pages of the command line in an empty directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", type=Path, help="the directory of commands of the environment")
    parser.add_argument("pages", nargs="+", choices=EXAMPLES, metavar="PAGE")
    arguments = parser.parse_args()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    with tempfile.TemporaryDirectory() as directory:
        run(arguments.pages, arguments.commands.absolute(), Path(directory), kept)
    print(f"{len(steps(arguments.pages))} examples of {', '.join(arguments.pages)} print what they show")


if __name__ == "__main__":
    main()
