from __future__ import annotations

import pickle
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from xmlstream.punct_ns.errors import (
    InputError,
    MalformedInput,
    NotationError,
    QueryError,
    StateError,
    UngrammaticalStream,
    UsageError,
    XmlStreamError,
    installs,
)


@pytest.mark.parametrize(
    "kind", [MalformedInput, NotationError, QueryError, StateError, UngrammaticalStream, UsageError]
)
def test_every_error_survives_pickling(kind: type[XmlStreamError]) -> None:
    error = kind("what", where="where", hint="hint")
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is kind
    assert str(twin) == "what\n  where\n  Hint: hint"
    assert vars(twin) == vars(error)


def test_malformed_input_knows_its_place() -> None:
    error = MalformedInput("'x' is not a valid INT", document="bids.xml", line=12, column=3, position=400)
    assert str(error) == "'x' is not a valid INT\n  bids.xml, line 12, column 3, item at position 400"
    assert pickle.loads(pickle.dumps(error)).line == 12
    assert isinstance(error, InputError)


def test_a_checkout_on_the_path_of_python_is_what_pip_can_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("xmlstream.punct_ns.errors.requires", requires)
    place, _, extra = installs("monitor").removeprefix("pip install '").partition("[")
    assert extra == "monitor]'"
    project = tomllib.loads((Path(place) / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "monitor" in project["optional-dependencies"]


def test_a_notation_error_is_a_value_error() -> None:
    assert issubclass(NotationError, ValueError)
