"""SQL text to a plan, or to an error with its place in the text."""

from xmlstream.extensions import called_as

called_as(__name__, "xs.from_sql(session, text)")
