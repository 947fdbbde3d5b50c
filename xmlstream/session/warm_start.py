"""Warm start: an archive of Java classes, and compiled Python modules, both made once for all later starts.

In a cold start Java spends most of the time to find, verify and link about 20,000 classes from Spark's jars. A Java
process can write its loaded classes to an archive when it ends; later processes map the archive into memory. An archive
fits one Java and one set of jars; its name has a digest of both, so that no other archive is used. Java checks this
again, and ignores an archive that does not fit. But a truncated archive makes Java crash, so the name also has the
length of the file.

pip compiles the modules that it installs; other installers do not. `xmlstream.cli.prepare` makes both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from xmlstream.punct_ns.errors import DISTRIBUTION

_OWN = Path(__file__).parents[1]

DIRECTORY_VARIABLE = "XMLSTREAM_CLASS_ARCHIVES"
"""Environment variable with the directory of archives; if it is empty, no archive is used."""


def java_home() -> Path | None:
    """Directory of the Java that Spark would start, from JAVA_HOME, else from PATH; None if there is none."""
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        return Path(named)
    found = shutil.which("java")
    return Path(found).resolve().parent.parent if found else None


def java_version(home: Path) -> str | None:
    """Version of the Java in a directory, such as `17.0.12`; None if its file `release` does not have it."""
    with suppress(OSError):
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r'^JAVA_VERSION="(.+)"$', release, re.MULTILINE):
            return found[1]
    return None


def jars() -> Path | None:
    """Directory of the jars of the Spark that would start; None if there is none."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        package = find_spec("pyspark")
        if package is None or package.origin is None:
            return None
        home = str(Path(package.origin).parent)
    found = Path(home).resolve() / "jars"
    return found if found.is_dir() else None


def directory() -> Path | None:
    """Directory of archives: from the environment variable, else in the virtual environment or in the user's cache.

    An archive fits the Spark of one environment only, and should be deleted with it.

    Returns:
        None if no archive is to be used.
    """
    if (named := os.environ.get(DIRECTORY_VARIABLE)) is not None:
        return Path(named).absolute() if named else None
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "class-archives"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "xmlstream"


def fitting() -> str | None:
    """Prefix of the names of archives that fit this Java and this Spark; None if their versions are unknown.

    It has both versions, and a digest of all that Java compares: itself, and the jars' paths, sizes and dates.
    """
    java, spark_jars = java_home(), jars()
    version = None if java is None else java_version(java)
    if java is None or spark_jars is None or version is None:
        return None
    try:
        release = (java / "release").read_text(encoding="utf-8", errors="replace")
        found = sorted((jar.name, jar.stat()) for jar in spark_jars.glob("*.jar"))
    except OSError:
        return None
    spark = next((name.removesuffix(".jar") for name, _ in found if name.startswith("spark-core_")), None)
    if spark is None:
        return None
    compared = [str(java.resolve()), release, str(spark_jars), *(f"{n} {s.st_size} {s.st_mtime_ns}" for n, s in found)]
    digest = hashlib.sha256("\n".join(compared).encode()).hexdigest()
    return f"{spark}-java-{version}-{digest[:12]}"


def archive() -> Path | None:
    """The newest archive that fits and is not truncated; None if there is none."""
    place, prefix = directory(), fitting()
    if place is None or prefix is None or not place.is_dir():
        return None
    whole = (path for path in place.glob(f"{prefix}-*.jsa") if path.name == whole_name(prefix, path))
    return max(whole, key=lambda path: path.stat().st_mtime_ns, default=None)


def whole_name(prefix: str, path: Path) -> str:
    """Name of an archive with the length of this file."""
    return f"{prefix}-{path.stat().st_size}.jsa"


def java_options() -> str:
    """Java options that use the archive, in Spark's form; empty if there is no archive."""
    found = archive()
    # The option is a list of paths, and their separator cannot be escaped in a path.
    if found is None or os.pathsep in str(found):
        return ""
    # Java would report on standard output that it ignores an archive for another class path.
    return f"-XX:SharedArchiveFile={java_quoted(found)} -Xlog:cds*=off"


def java_quoted(path: Path) -> str:
    """A path quoted for Spark's list of Java options.

    >>> java_quoted(Path("/home/me/my files"))
    '"/home/me/my files"'
    """
    return '"' + re.sub(r'(["\\])', r"\\\1", str(path)) + '"'


_OPTIONAL = re.compile(r";.*\bextra\b(?!.*\bspark\b)")


def compile_byte_code() -> None:
    """Compiles the modules that have no byte code for this Python; skips those that cannot be written."""
    from compileall import compile_dir, compile_file

    for place in places():
        if place.is_dir():
            compile_dir(place, quiet=2, workers=0)
        else:
            compile_file(place, quiet=2)


def places() -> list[Path]:
    """The packages and modules of this project and of its dependencies, of its extras those of `spark`."""
    found = [_OWN, *filter(Path.is_symlink, _OWN.iterdir())]  # in a checkout three of its packages are links
    for each in _dependencies(DISTRIBUTION, set()):
        tops = {file.parts[0] for file in each.files or () if file.suffix == ".py"}
        found += [Path(str(each.locate_file(top))) for top in sorted(tops) if top != ".."]
    return [place for place in found if place.exists()]


def _dependencies(name: str, seen: set[str]) -> Iterator[Distribution]:
    """The installed distributions that a distribution requires, directly or indirectly."""
    seen.add(name)
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if name != DISTRIBUTION:
        yield found
    for required in found.requires or ():
        (needed,) = re.findall(r"^[\w.-]+", required)
        if not _OPTIONAL.search(required) and needed not in seen:
            yield from _dependencies(needed, seen)
