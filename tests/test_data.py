"""The committed inputs are small, and what their README says they are."""

from __future__ import annotations

from pathlib import Path

from xmlstream.sources.generators.sensors import write_sensors

DATA = Path(__file__).parents[1] / "data"


def test_the_sensors_are_what_the_generator_makes(tmp_path: Path) -> None:
    for made in write_sensors(tmp_path, sensors=2, hours=6, punctuations_per_hour=1, seed=7):
        assert made.read_bytes() == (DATA / made.name).read_bytes()


def test_every_input_is_told_of_and_all_are_small() -> None:
    files = [path for path in DATA.rglob("*") if path.is_file()]
    told = {path.parent: path.read_text(encoding="utf-8") for path in files if path.name == "README.md"}
    untold = [path for path in files if f"`{path.name}`" not in told[path.parent] and path.name != "README.md"]
    assert untold == []
    assert sum(path.stat().st_size for path in files) < 1_000_000
