"""`xmlstream example`: copies the queries and small inputs of the documentation.

They are in `data` of a checkout; a wheel installs them into `share/xmlstream/data` of the environment.
"""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath

from xmlstream.punct_ns.errors import DISTRIBUTION, UsageError


def share() -> Path:
    """Directory with `data` and the pages of the manual: the checkout, or where the wheel has installed them.

    Raises:
        UsageError: They are not installed.
    """
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "data" / "warehouse.sql").is_file():
        return checkout
    with suppress(PackageNotFoundError):
        for file in distribution(DISTRIBUTION).files or ():
            if file.as_posix().endswith("share/xmlstream/data/warehouse.sql"):
                return Path(str(file.locate())).resolve().parents[1]
    raise UsageError(
        "the examples and the manual are not installed", hint="install the wheel, or use the files of a checkout"
    )


def examples() -> dict[str, Path]:
    """Returns the files of the examples by their paths relative to the directory of all examples.

    Raises:
        UsageError: The examples are not installed.
    """
    data = share() / "data"
    return {path.relative_to(data).as_posix(): path for path in sorted(data.rglob("*")) if path.is_file()}


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
        near = get_close_matches(wanted, stems, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(stems)}"
        raise UsageError(f"there is no example {wanted}", hint=hint)
    return found
