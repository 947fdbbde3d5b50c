"""Whether what a command shall read is there, found out before anything heavy is started."""

from __future__ import annotations

from punct_ns.errors import InputError, UsageError
from sources.documents import Documents
from sources.source import SourceOptions
from xmlstream.merged_documents import merged_documents


def require_found(options: SourceOptions) -> None:
    """Makes sure that the path of a source leads somewhere.

    Raises:
        UsageError: It does not.
    """
    if options.is_merged:
        merged_documents(options)
        return
    try:
        Documents(options, log=False).find()
    except InputError as error:
        raise UsageError(error.what, hint="a path is that of a file, a directory or a glob") from None
