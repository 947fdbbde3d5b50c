"""A test kit for queries: slices of rows and punctuations in, the result out, with a clock that is set.

import xmlstream.testing as xt

case = xt.case(query)
case.slice(sensor1=[{"sid": "S1", "hour": 17, "currtmp": 20.5}, xt.punctuation(hour=17)], sensor2="<*, 17, *>")
xt.assert_closed(case, "<*, 17>")
"""

from xmlstream.testing.assertions import assert_closed, assert_cut_independent, assert_result
from xmlstream.testing.case import Case, SliceResult, case
from xmlstream.testing.items import END, punctuation

__all__ = [
    "END",
    "Case",
    "SliceResult",
    "assert_closed",
    "assert_cut_independent",
    "assert_result",
    "case",
    "punctuation",
]
