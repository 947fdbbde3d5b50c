"""Warm start: an archive of Java's classes, and Python's byte code, both made once for all later starts.

Most of a cold start is Java finding, checking and linking some twenty thousand classes out of Spark's jars. A process
can leave what it has loaded in an archive when it ends, and later ones map that into memory. An archive is of one Java
and of one set of jars, and its name is made of both, so that an archive of others is not found. Java looks once more,
and goes on without it where it differs, whatever the collector or the size of the heap; but an archive that is cut
short makes it crash, so its name has the length, too.

pip compiles what it installs; other installers do not, and some environments forbid Python to keep what it compiles.
`xmlstream.cli.prepare` makes both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from compileall import compile_dir, compile_file
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from xmlstream.session.own_packages import HOME, NAMES

DIRECTORY_VARIABLE = "XMLSTREAM_CLASS_ARCHIVES"
"""The environment variable that names the directory of archives; empty for none."""


def java_home() -> Path | None:
    """Where the Java is that Spark would start: of JAVA_HOME, else of PATH; None where there is none."""
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        return Path(named)
    found = shutil.which("java")
    return Path(found).resolve().parent.parent if found else None


def jars() -> Path | None:
    """The directory of the jars of the Spark that would start; None where there is none."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        package = find_spec("pyspark")
        if package is None or package.origin is None:
            return None
        home = str(Path(package.origin).parent)
    found = Path(home).resolve() / "jars"
    return found if found.is_dir() else None


def directory() -> Path | None:
    """Where archives lie: where the environment says, in the virtual environment, or in the user's cache.

    An archive fits the Spark of one environment only, and should go when that goes. None: none are wanted.
    """
    if (named := os.environ.get(DIRECTORY_VARIABLE)) is not None:
        return Path(named).absolute() if named else None
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "class-archives"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "xmlstream"


def fitting() -> str | None:
    """What names of archives begin with that fit the Java and the Spark of this process; None where that is not known.

    It is readable, and ends in a digest of all that Java compares: itself, and the jars' places, sizes and dates.
    """
    java, spark_jars = java_home(), jars()
    if java is None or spark_jars is None:
        return None
    try:
        release = (java / "release").read_text(encoding="utf-8", errors="replace")
        found = sorted((jar.name, jar.stat()) for jar in spark_jars.glob("*.jar"))
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="(.+)"$', release, re.MULTILINE)
    spark = next((name.removesuffix(".jar") for name, _ in found if name.startswith("spark-core_")), None)
    if version is None or spark is None:
        return None
    compared = [str(java.resolve()), release, str(spark_jars), *(f"{n} {s.st_size} {s.st_mtime_ns}" for n, s in found)]
    digest = hashlib.sha256("\n".join(compared).encode()).hexdigest()
    return f"{spark}-java-{version[1]}-{digest[:12]}"


def archive() -> Path | None:
    """The archive that fits, whole; None where there is none."""
    place, prefix = directory(), fitting()
    if place is None or prefix is None or not place.is_dir():
        return None
    whole = (path for path in place.glob(f"{prefix}-*.jsa") if path.name == whole_name(prefix, path))
    return max(whole, key=lambda path: path.stat().st_mtime_ns, default=None)


def whole_name(prefix: str, path: Path) -> str:
    """What an archive is called that has just the length of this file."""
    return f"{prefix}-{path.stat().st_size}.jsa"


def java_options() -> str:
    """The options that make Java use the archive, as Spark takes them; empty where there is none."""
    found = archive()
    # Java takes a list of archives, and has no way to write a path that holds what keeps them apart.
    if found is None or os.pathsep in str(found):
        return ""
    # Where the class path was changed, Java says on standard output that it does without: that is all it says of this.
    return f"-XX:SharedArchiveFile={java_quoted(found)} -Xlog:cds*=off"


def java_quoted(path: Path) -> str:
    """A path as Spark takes it in a list of Java's options.

    >>> java_quoted(Path("/home/me/my files"))
    '"/home/me/my files"'
    """
    return '"' + re.sub(r'(["\\])', r"\\\1", str(path)) + '"'


PRODUCT = "xmlstream"

_OPTIONAL = re.compile(r";.*\bextra\b")


def compile_byte_code() -> None:
    """Compiles what has no byte code, or that of another version; what cannot be written stays as it is."""
    for place in places():
        if place.is_dir():
            compile_dir(place, quiet=2, workers=0)
        else:
            compile_file(place, quiet=2)


def places() -> list[Path]:
    """The packages and modules of this product and of what it depends on, without its extras."""
    found = [HOME / name for name in (PRODUCT, *NAMES)]
    for each in _dependencies(PRODUCT, set()):
        tops = {file.parts[0] for file in each.files or () if file.suffix == ".py"}
        found += [Path(str(each.locate_file(top))) for top in sorted(tops) if top != ".."]
    return [place for place in found if place.exists()]


def _dependencies(name: str, seen: set[str]) -> Iterator[Distribution]:
    """What a distribution requires, and what that requires; one that is not installed is needed elsewhere only."""
    seen.add(name)
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if name != PRODUCT:
        yield found
    for required in found.requires or ():
        (needed,) = re.findall(r"^[\w.-]+", required)
        if not _OPTIONAL.search(required) and needed not in seen:
            yield from _dependencies(needed, seen)
