"""What GitHub runs and shows: workflows call what is there, on the declared versions, with the least rights."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.harness.pages import ROOT, copied

yaml: Any = import_module("yaml")

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXPRESSION = r"\$\{\{ matrix\.(\w+) \}\}"


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        yield from ((f"{path.stem}/{name}", job) for name, job in _read(path)["jobs"].items())


def _steps() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    yield from ((name, job, step) for name, job in _jobs() for step in job.get("steps", ()))


def _values(job: dict[str, Any], written: str) -> list[str]:
    """What a text of a step is in each run of its job's matrix."""
    found = re.fullmatch(EXPRESSION, written)
    return job["strategy"]["matrix"][found[1]] if found else [written]


def test_a_step_calls_make_or_a_script_and_nothing_else() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", made, re.MULTILINE))
    called = [step["run"] for _, _, step in _steps() if "run" in step]
    for command in called:
        one, *more = command.split()
        if one == "make":
            target, *variables = more
            assert target in targets, command
            assert all(f"$({each.partition('=')[0]})" in made for each in variables), command
        else:
            assert one.startswith(".ci/"), command
            assert os.access(ROOT / one, os.X_OK), command
    assert {".ci/run", "make oldest", "make try", "make docs"} <= set(called)


def test_the_wheel_is_tried_on_linux_and_macos() -> None:
    (job,) = [job for _, job, step in _steps() if step.get("run") == "make try"]
    assert {system.partition("-")[0] for system in job["strategy"]["matrix"]["os"]} == {"ubuntu", "macos"}


def test_versions_are_the_oldest_and_the_newest_that_the_project_declares() -> None:
    pythons, javas = set(), set()
    for _, job, step in _steps():
        given = step.get("with", {})
        pythons |= set(_values(job, given.get("python-version", ""))) - {""}
        javas |= {given["java-version"]} if "java-version" in given else set()
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={declared[0]}"
    assert pythons == {declared[0], declared[-1]}
    (java,) = re.findall(r"^oldest=(\d+)$", (ROOT / ".ci" / "java").read_text(encoding="utf-8"), re.MULTILINE)
    assert javas == {java}
    # PySpark's versions are those of pyproject.toml and the lock.
    assert not [
        path for path in WORKFLOWS if re.search(r"pyspark\W*\d", path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]


def test_actions_are_those_of_github_and_pypi_at_a_fixed_version() -> None:
    used = [step["uses"] for _, _, step in _steps() if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"(actions/[\w-]+|pypa/gh-action-pypi-publish)@(v\d+|release/v\d+|[0-9a-f]{40})", action), (
            action
        )
    for _, _, step in _steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    called = [job["uses"] for _, job in _jobs() if "uses" in job]
    assert called
    assert all((ROOT / workflow).is_file() for workflow in called)


def test_a_job_may_read_the_tree_and_only_a_release_may_write_what_it_is_for() -> None:
    assert [_read(path)["permissions"] for path in WORKFLOWS] == [{"contents": "read"}] * len(WORKFLOWS)
    assert {name: job["permissions"] for name, job in _jobs() if "permissions" in job} == {
        "release/upload": {"id-token": "write"},
    }
    assert not [path for path in WORKFLOWS if "pull_request_target" in path.read_text(encoding="utf-8")]
    # A job with more rights runs actions, nothing of the tree.
    assert not [name for name, job, step in _steps() if "permissions" in job and "run" in step]


def test_what_is_released_has_passed_all_checks() -> None:
    jobs = dict(_jobs())
    assert jobs["release/check"]["uses"] == "./.github/workflows/check.yml"
    assert jobs["release/upload"]["needs"] == ["check", "build"]


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_each_thing_once(form: Path) -> None:
    read = _read(form)
    assert {"name", "description", "body"} <= set(read)
    names = [field["id"] for field in read["body"]]
    assert len(names) == len(set(names))
    assert all(field["attributes"]["label"] for field in read["body"])


def test_what_a_contributor_promises_is_a_target() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in ("pull_request_template.md", "CONTRIBUTING.md"):
        for target in re.findall(r"`make ([a-z-]+)", (GITHUB / page).read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", made, re.MULTILINE), (page, target)


def test_the_container_is_built_from_what_it_copies() -> None:
    """That a whole wheel comes of it, `test_examples` shows."""
    assert len(copied()) > 5
    lines = (ROOT / ".ci" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(copied())


@pytest.mark.parametrize(
    ("tag", "changelog", "refused"),
    [
        ("v0.2.0", "## 0.1.0 (2026-12-01)", "The tag is v0.2.0, the version in pyproject.toml 0.1.0."),
        ("v0.1.0", "## 0.1.0 (unreleased)", "CHANGELOG.md has no '## 0.1.0 (DATE)'."),
    ],
)
def test_a_tag_of_another_version_or_without_its_day_is_not_built(
    tmp_path: Path, tag: str, changelog: str, refused: str
) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "wheel").write_bytes((ROOT / ".ci" / "wheel").read_bytes())
    (tmp_path / "pyproject.toml").write_text('version = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n")
    done = subprocess.run(
        ["bash", tmp_path / ".ci" / "wheel", "build", tag], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (1, refused)
