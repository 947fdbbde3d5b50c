"""What an operator takes over is told from its parameters, whatever attributes are called."""

from __future__ import annotations

import pytest

from xmlstream.operators.join import Join
from xmlstream.operators.taking_over import is_alike


@pytest.mark.parametrize("name", ["Inner", "inner", "other"])
def test_an_attribute_may_be_called_as_the_kind_of_its_join(name: str) -> None:
    join = Join("inner", ("k",), ("l",))
    assert is_alike(join, join, {"k": "k", "l": "l", name.lower(): name})
    assert not is_alike(join, Join("left", ("k",), ("l",)), {"k": "k", "l": "l", name.lower(): name})
