from __future__ import annotations

import pickle

from xmlstream.punct_ns.grammar import Offence
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

HOUR = Schema.parse("hour INT")


def test_an_offence_is_an_error_that_says_all() -> None:
    error = Offence((None,), 9, Punctuation.parse("<null>", HOUR), 4, "bids.xml").error()
    assert str(error).startswith(
        "the tuple (null) comes after the punctuation <null>, which matches it\n  bids.xml, item"
    )
    twin = pickle.loads(pickle.dumps(error))
    assert str(twin) == str(error)
    assert (twin.tuple, twin.punctuation, twin.tuple_position) == ((None,), error.punctuation, 9)
