"""Examples of the documentation: its queries and small inputs, found where they were installed, and copied.

In a checkout they are its `data` directory; a wheel puts them into `share/xmlstream/data` of the environment.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath

from punct_ns.errors import UsageError

EXAMPLES = PurePath("share/xmlstream/data")


def examples() -> dict[str, Path]:
    """The files by their names, which are paths from the directory that they belong to.

    Raises:
        UsageError: They are not installed.
    """
    checkout = Path(__file__).resolve().parents[2] / "data"
    if (checkout / "warehouse.sql").is_file():
        return {path.relative_to(checkout).as_posix(): path for path in sorted(checkout.rglob("*")) if path.is_file()}
    found: dict[str, Path] = {}
    try:
        for file in distribution("xmlstream").files or ():
            _, mark, name = file.as_posix().partition(f"{EXAMPLES.as_posix()}/")
            if mark:
                found[name] = Path(str(file.locate())).resolve()
    except PackageNotFoundError:
        pass
    if not found:
        raise UsageError(
            "the examples are not installed", hint="they come with the wheel, and lie in a checkout's data"
        )
    return dict(sorted(found.items()))


def write_examples(names: list[str], out: Path) -> list[Path]:
    """Writes examples, all of them if no names are given; what is there already stays, and must be the same.

    Args:
        names: As `examples` has them, or the last parts of those, with or without their suffixes.
        out: The directory that they go to.

    Raises:
        UsageError: There is no such example, or another file is in its place.
    """
    known = examples()
    chosen = {name: path for wanted in names for name, path in _called(wanted, known).items()} if names else known
    written = []
    for name, path in chosen.items():
        target, content = out / name, path.read_bytes()
        written.append(target)
        if target.exists():
            if target.read_bytes() != content:
                raise UsageError(f"{target} is there, and is another file", hint="name another directory with --out")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return written


def _called(wanted: str, known: dict[str, Path]) -> dict[str, Path]:
    found = {name: file for name, file in known.items() if wanted in (name, PurePath(name).name, PurePath(name).stem)}
    if not found:
        stems = sorted(PurePath(name).stem for name in known if name.endswith(".sql"))
        raise UsageError(f"there is no example {wanted}", hint=f"there are {', '.join(stems)}")
    return found
