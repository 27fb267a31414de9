"""The wheel alone, in an empty environment, runs the README's quick start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build")
pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CONSTRAINTS = ROOT / "constraints.txt"
TRAINING_LIBRARIES = ("torch", "stable_baselines3", "sb3_contrib", "scipy", "pettingzoo", "pygame")
PACKAGE = "deck_of_spies_env"
SOURCES = (".py", ".css", ".js", ".tcss", ".npz")

RUN_DOCTESTS = """
import doctest, pathlib, sys
text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, "quick start", None, 0)
assert test.examples, "there is nothing to run"
sys.exit(bool(doctest.DocTestRunner().run(test).failed))
"""


def quick_start(readme: str) -> str:
    """The first python block of the section *Quick start*, empty if there is none."""
    match = re.search(
        r"^## Quick start\s*$(?:(?!^## ).)*?^```python\n(.*?)^```",
        readme,
        flags=re.MULTILINE | re.DOTALL,
    )
    return match[1] if match else ""


def run(*command: str | Path, folder: Path) -> str:
    """The stdout of a command; neither this checkout nor the user's settings reach it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    result = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout with the tools at hand."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT),
        folder=folder,
    )
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with nothing but the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    constraints = ("-c", CONSTRAINTS) if CONSTRAINTS.is_file() else ()
    run(python, "-m", "pip", "install", "--quiet", *constraints, wheel, folder=folder)
    return python


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    [information] = tops - {PACKAGE}
    assert re.fullmatch(rf"{PACKAGE}-[\w.]+\.dist-info", information)
    kept = (*SOURCES, "/py.typed", "/METADATA", "/WHEEL", "/RECORD", "/licenses/LICENSE")
    assert [name for name in names if not name.endswith(kept)] == []
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.suffix in SOURCES
    }
    assert {name for name in names if name.endswith(SOURCES)} == sources


def test_no_training_library_comes_with_it(python: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys, deck_of_spies_env;"
        "print([name for name in sys.argv[1:] if u.find_spec(name)], deck_of_spies_env.__file__)"
    )
    printed = run(python, "-c", code, *TRAINING_LIBRARIES, "agents", folder=tmp_path)
    assert printed.startswith("[] ")
    assert str(ROOT) not in printed, "the checkout was imported, not the wheel"


def test_quick_start_runs(python: Path, tmp_path: Path) -> None:
    code = quick_start(README.read_text(encoding="utf-8"))
    assert code, "README.md has no python block under the heading 'Quick start'"
    script = tmp_path / "quick_start.py"
    script.write_text(code, encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    if ">>>" in code:
        run(python, "-c", RUN_DOCTESTS, script, folder=empty)
    else:
        run(python, script, folder=empty)


EVALUATE = """
import sys
sys.path.extend(sys.argv[1:])
from deck_of_spies_env.evaluation import evaluate

def last(observations, action_masks):
    return action_masks.shape[1] - 1 - action_masks[:, ::-1].argmax(axis=1)

evaluation = evaluate(last, deals=200, batched=True)
print(evaluation)
print(evaluation.ladder())
"""

WITHOUT_EXTRA = """
try:
    from deck_of_spies_env.evaluation import evaluate
except ImportError as error:
    print(error)
"""


def test_a_policy_is_judged_with_the_wheel_alone(python: Path, tmp_path: Path) -> None:
    """The libraries of the extra are borrowed from the environment of the tests."""
    refused = run(python, "-c", WITHOUT_EXTRA, folder=tmp_path)
    assert "pip install 'deck_of_spies_env[evaluate]'" in refused
    printed = run(python, "-c", EVALUATE, sysconfig.get_path("purelib"), folder=tmp_path)
    assert "200 deals" in printed
    assert "last: " in printed
    assert "ppo:objective=perfect" in printed


def test_quick_start_is_found() -> None:
    page = "# T\n\n## Quick start\n\nText\n\n```sh\nls\n```\n\n```python\nA\n```\n## B\n"
    assert quick_start(page) == "A\n"
    assert quick_start("## Quick start\n\n## Other\n\n```python\nA\n```\n") == ""
    assert quick_start("") == ""
