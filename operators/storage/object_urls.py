"""URLs of object stores: the options that they carry, and the client that each opens.

A URL may carry options of the store: `s3://bucket/orders?endpoint=http://127.0.0.1:8333&region=eu-central-1`. So an
option reaches each process that reads the URL. Credentials never stand in a URL: the client takes them from the
environment, a profile, or the role of the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from xmlstream.punct_ns.errors import StateError, UsageError, not_installed, without_secrets

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "memory")
"""Schemes of the URLs of object stores; objects of `memory` last as long as the process, for tests."""

OPTIONS = ("endpoint", "region")
"""Options that a URL can carry, and that tables take."""

SECONDS = 30
"""The seconds that a request may take."""

CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE (Google: GOOGLE_APPLICATION_CREDENTIALS, Azure: "
    "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY), or give the machine a role"
)
"""The hint if access is denied."""

_VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION")
"""Variables of the environment that determine a client of S3, besides those that the client reads itself."""


def is_object_url(path: str) -> bool:
    """Whether a path is the URL of an object store.

    >>> is_object_url("s3://bucket/in"), is_object_url("/data/in"), is_object_url("hdfs://there/in")
    (True, False, False)
    """
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.lower() in SCHEMES


def require_known_scheme(path: str) -> None:
    """Refuses what is neither a path of this file system nor the URL of an object store, such as `hdfs://there/in`.

    Raises:
        UsageError: The path begins with another scheme, and no file has this name.
    """
    scheme, separator, _ = path.partition(":/")
    if not separator or _SCHEME.fullmatch(scheme) is None or scheme.lower() == "file" or is_object_url(path):
        return
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for a name that is too long
        raise UsageError(
            f"{path} is neither on this file system nor in an object store",
            hint="mount it where all nodes see it, or use an object store: s3://bucket/path, gs://, az://",
        )


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def joined(url: str, key: str) -> str:
    """The URL of an object below a URL, with the same options.

    >>> joined("s3://bucket/out/?region=r", "slice-1.xml")
    's3://bucket/out/slice-1.xml?region=r'
    """
    place, mark, options = url.partition("?")
    return f"{place.rstrip('/')}/{key}{mark}{options}" if key else f"{place.rstrip('/')}{mark}{options}"


def shown(place: str) -> str:
    """A path, or a URL without its options, without secrets, as messages name it.

    >>> shown("s3://bucket/out/?region=r"), shown("s3://bucket/who%3F"), shown("/data/who?")
    ('s3://bucket/out', 's3://bucket/who?', '/data/who?')
    """
    return without_secrets(unquoted(place.partition("?")[0].rstrip("/")) if is_object_url(place) else place)


def quoted(key: str) -> str:
    """A key as it stands in a URL that may carry options.

    >>> quoted("in/who?.xml"), unquoted("in/who%3F.xml")
    ('in/who%3F.xml', 'in/who?.xml')
    """
    return key.replace("%", "%25").replace("?", "%3F")


def unquoted(text: str) -> str:
    """The key that `quoted` has written."""
    return text.replace("%3F", "?").replace("%25", "%")


def with_options(url: str, options: Mapping[str, str]) -> str:
    """A URL that carries these options besides its own; of `OPTIONS`, those that are given.

    >>> with_options("s3://bucket/in", {"region": "r", "rowTag": "bid"})
    's3://bucket/in?region=r'
    """
    place, _, own = url.partition("?")
    given = dict(parse_qsl(own)) | {name: options[name] for name in OPTIONS if options.get(name)}
    return f"{place}?{urlencode(given, safe=':/')}" if given else place


def client_package() -> Any:
    """The package of the client.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import obstore
    except ImportError:
        raise not_installed("obstore, which reads and writes object stores,", "objects") from None
    return obstore


def client_error(name: str) -> type[Exception]:
    """A class of the client's errors."""
    client_package()
    import obstore.exceptions

    found: type[Exception] = getattr(obstore.exceptions, name)
    return found


def _split(url: str) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The root of a URL (its bucket), the prefix of keys in the bucket, and the options."""
    parts = urlsplit(url.partition("?")[0], allow_fragments=False)
    if parts.password or (parts.username and not parts.scheme.startswith("abfs")):
        raise UsageError(f"{parts.scheme}://…@{parts.hostname} contains credentials", hint=CREDENTIALS)
    if not parts.netloc and parts.scheme != "memory":
        raise UsageError(f"{url} names no bucket", hint="write s3://bucket/path")
    options = parse_qsl(url.partition("?")[2])
    if unknown := [name for name, _ in options if name not in OPTIONS]:
        raise UsageError(f"{shown(url)}: unknown option {unknown[0]}", hint=f"a URL takes {' and '.join(OPTIONS)}")
    scheme = "s3" if parts.scheme.lower() == "s3a" else parts.scheme.lower()
    return f"{scheme}://{parts.netloc}", parts.path.strip("/"), tuple(sorted(options))


def bucket_of(url: str) -> str:
    return _split(url)[0]


def opened(url: str, seconds: int = SECONDS) -> tuple[Any, str]:
    """The client of the bucket of a URL, which gives a request so many seconds, and the prefix of its keys.

    Raises:
        UsageError: The URL contains credentials or unknown options, or names no bucket; the client is not installed.
    """
    root, prefix, options = _split(url)
    # A changed environment makes another client.
    environment = tuple(os.environ.get(name, "") for name in _VARIABLES) if root.startswith("s3:") else ()
    return _client(root, options, environment, seconds), prefix


@lru_cache(maxsize=64)
def _client(root: str, options: tuple[tuple[str, str], ...], environment: tuple[str, ...], seconds: int) -> Any:
    """The client of a bucket."""
    client_package()
    from obstore.store import MemoryStore, from_url

    open_: Any = from_url
    scheme = root.partition(":")[0]
    if scheme == "memory":
        return MemoryStore() if seconds == SECONDS else _client(root, options, environment, SECONDS)
    config: Any = _settings(scheme, dict(options))
    settings: dict[str, Any] = {"timeout": f"{seconds}s", "connect_timeout": "5s"}
    if config.get("endpoint", "").startswith("http://"):
        settings["allow_http"] = "true"
    # The client repeats a request a few times; the patience with a store that is away is ours, with words.
    retry: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
    try:
        return open_(root, config=config or None, client_options=settings, retry_config=retry)
    except client_error("BaseError") as error:
        raise UsageError(f"{root} cannot be opened: {reason(error)}") from None


def _settings(scheme: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client that it does not take from the environment itself."""
    endpoint = given.get("endpoint") or (os.environ.get("AWS_ENDPOINT_URL", "") if scheme == "s3" else "")
    if urlsplit(endpoint).username:
        raise UsageError(f"the endpoint {endpoint} contains credentials", hint=CREDENTIALS)
    if urlsplit(endpoint).path.strip("/"):
        raise UsageError(f"the endpoint {endpoint} has a path", hint="options end a URL: s3://bucket/a.xml?endpoint=…")
    config = {"endpoint": endpoint} if endpoint else {}
    if scheme == "s3":
        config |= _profile()
        region = given.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        config["region"] = region or config.get("region") or "us-east-1"
    return config


def settings_for_others(url: str) -> dict[str, str]:
    """The settings by which another client reaches the store of a URL: `endpoint`, `region`, keys of a profile.

    What the environment has by the names of the store's own tools is not among them.
    """
    root, _, options = _split(url)
    return _settings(root.partition(":")[0], dict(options))


def is_sayable(key: str) -> bool:
    r"""Whether the client can name an object.

    >>> is_sayable("in/a b.xml"), is_sayable("in//a.xml"), is_sayable("in/../a.xml"), is_sayable("in/a\tb.xml")
    (True, False, False, False)
    """
    return not any(part in ("", ".", "..") or _CONTROL.search(part) for part in key.split("/"))


_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def keys_by_arrow(url: str, *, deep: bool) -> list[str]:
    """The sorted keys below a URL, relative to it; of folders with a slash. Arrow's client lists objects of any name.

    Raises:
        Exception: The client's `GenericError`: the store cannot be listed.
        FileNotFoundError: There is no such bucket or folder.
        StateError: Arrow is not a client of such a store.
    """
    root, prefix, _ = _split(url)
    if not root.startswith("s3:"):
        what = f"{shown(url)} has an object whose name has an empty part, a part . or .., or a control character"
        raise StateError(what, hint="rename the object, or remove it")
    from pyarrow.fs import FileSelector, FileType, S3FileSystem

    given = settings_for_others(url)
    names = {"access_key_id": "access_key", "secret_access_key": "secret_key"}
    place = given.pop("endpoint", None)
    known: Any = {names.get(name, name): value for name, value in given.items()}
    client = S3FileSystem(endpoint_override=place, connect_timeout=5.0, request_timeout=float(SECONDS), **known)
    there = "/".join(part for part in (root.partition("://")[2], prefix) if part)
    try:
        found = client.get_file_info(FileSelector(there, recursive=deep))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise client_error("GenericError")(str(error)) from None
    keys = {each.path[len(there) + 1 :]: each.type == FileType.Directory for each in found}
    return sorted(f"{key}/" if is_folder else key for key, is_folder in keys.items() if not (deep and is_folder))


def _profile() -> dict[str, str]:
    """Keys and region of a profile in the files of AWS's tools, if the environment has no keys."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    from configparser import ConfigParser

    home = Path.home() / ".aws"
    name = os.environ.get("AWS_PROFILE") or "default"
    places = {
        os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials": name,
        os.environ.get("AWS_CONFIG_FILE") or home / "config": name if name == "default" else f"profile {name}",
    }
    found: dict[str, str] = {}
    for path, section in places.items():
        files = ConfigParser(interpolation=None)
        files.read(path)
        if files.has_section(section):
            found = {**dict(files[section]), **found}
    if os.environ.get("AWS_PROFILE") and not found:
        raise UsageError(f"there is no profile {name} in {home}", hint="check AWS_PROFILE")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region")
    keys = {each.removeprefix("aws_"): found[each] for each in names if each in found}
    if os.environ.get("AWS_PROFILE") and "access_key_id" not in keys:
        what = f"the profile {name} has no aws_access_key_id: other kinds of profiles are not read"
        raise UsageError(what, hint="export the credentials: eval $(aws configure export-credentials --format env)")
    return keys


def reason(error: BaseException) -> str:
    """The cause in the client's error, without the request."""
    text = " ".join(str(error).split("\n")[0].split()).partition(": <?xml")[0].rstrip(": ")
    kind, _, request = text.partition(": Error performing ")
    code = re.search(r"<Code>(\w+)</Code>", str(error))
    return (request.rpartition(" - ")[2] or kind).partition(": <")[0][:200] + (f" ({code[1]})" if code else "")
