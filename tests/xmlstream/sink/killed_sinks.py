"""A run into XML, Parquet, Delta and PostgreSQL at once, of many small slices, which others kill at any moment.

Called by test_transaction_runs.py and the campaign: INPUT OUTPUT CHECKPOINT URL, where URL is that of the database.
"""

from __future__ import annotations

import sys
from pathlib import Path

from xmlstream.cli.commands import main

SCHEMA = "id INT, hour INT"
FORMS = {"xml": "punctuated_xml", "parquet": "parquet", "delta": "delta"}


def script(source: str, out: str, url: str) -> str:
    """The same tuples into four sinks."""
    sinks = [
        f"CREATE TABLE as_{name} USING {form} OPTIONS (path '{out}/{name}.{name}');" for name, form in FORMS.items()
    ]
    sinks.append(f"CREATE TABLE as_postgresql USING postgresql OPTIONS (url '{url}', table 'killed');")
    inserts = [f"INSERT INTO as_{name} SELECT id, hour FROM s;" for name in (*FORMS, "postgresql")]
    read = (
        f"CREATE TABLE s ({SCHEMA}) USING punctuated_xml"
        f" OPTIONS (path '{source}', rowTag 'r', schemes 'hour', maxFilesPerSlice 1);"
    )
    return "\n".join([read, *sinks, *inserts])


if __name__ == "__main__":
    source, out, checkpoint, url = sys.argv[1:]
    text = Path(out) / "query.sql"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(script(source, out, url))
    sys.argv = ["xmlstream", "run", str(text), "--checkpoint", checkpoint, "--master", "local[2]"]
    main()
