"""`xmlstream example`: copies the queries and small inputs of the documentation.

In a checkout they are in `data`; a wheel installs them into `share/xmlstream/data` of the environment.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath

from punct_ns.errors import UsageError

EXAMPLES = PurePath("share/xmlstream/data")


def examples() -> dict[str, Path]:
    """Returns the files of the examples by their paths relative to the directory of all examples.

    Raises:
        UsageError: The examples are not installed.
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
            "the examples are not installed", hint="install the wheel, or use the directory data of a checkout"
        )
    return dict(sorted(found.items()))


def write_examples(names: list[str], out: Path) -> list[Path]:
    """Writes examples; keeps a file that already exists with the same content.

    Args:
        names: Paths as in `examples`, or file names, with or without suffix; all examples if empty.
        out: The directory to write to.

    Returns:
        The paths of the examples in `out`.

    Raises:
        UsageError: There is no such example, or a file of that name has other content.
    """
    known = examples()
    chosen = {name: path for wanted in names for name, path in _matching(wanted, known).items()} if names else known
    written = []
    for name, path in chosen.items():
        target, content = out / name, path.read_bytes()
        written.append(target)
        if target.exists():
            if target.read_bytes() != content:
                raise UsageError(f"{target} exists with other content", hint="name another directory with --out")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return written


def _matching(wanted: str, known: dict[str, Path]) -> dict[str, Path]:
    found = {name: file for name, file in known.items() if wanted in (name, PurePath(name).name, PurePath(name).stem)}
    if not found:
        stems = sorted(PurePath(name).stem for name in known if name.endswith(".sql"))
        raise UsageError(f"there is no example {wanted}", hint=f"there are {', '.join(stems)}")
    return found
