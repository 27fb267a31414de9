"""Tests of the documentation: snippets run, tables agree with the code, links lead somewhere."""

from __future__ import annotations

import doctest
import inspect
import json
import math
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import evaluate
from agents import REGISTRY
from agents.skirmish import REGISTRY as SKIRMISH_REGISTRY
from agents.training.config import TrainConfig
from deck_of_spies_env import ENV_IDS
from deck_of_spies_env.evaluation.reports import AgentReport, Comparison, Report
from deck_of_spies_env.evaluation.table_reports import (
    TableAgentReport,
    TableComparison,
    TableReport,
)
from deck_of_spies_env.skirmish import observations as skirmish_observations
from deck_of_spies_env.skirmish.env import SkirmishEnv
from deck_of_spies_env.skirmish.rules import Rules as SkirmishRules
from deck_of_spies_env.solitaire.actions import action_table
from deck_of_spies_env.solitaire.observations import layout_table
from deck_of_spies_env.solitaire.rules import KINDS, MAX_HAND_SIZE, MIN_HAND_SIZE

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md")),
)
ENVIRONMENT, TRAINING = "docs/environment.md", "docs/training.md"
EVALUATION = "docs/evaluation.md"
SKIRMISH = "docs/skirmish.md"
FENCE = "```"


def text_of(document: str) -> str:
    """A document as text; an unwritten one is empty."""
    path = ROOT / document
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def code_blocks(text: str, language: str = "python") -> list[tuple[int, str]]:
    """Fenced blocks of a language, each with the number of lines before its first."""
    blocks: list[tuple[int, str]] = []
    lines = text.splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None:
            if line.strip() == FENCE + language:
                start = number + 1
        elif line.strip() == FENCE:
            blocks.append((start, "\n".join(lines[start:number]) + "\n"))
            start = None
    return blocks


def tables(text: str) -> list[list[list[str]]]:
    """The markdown tables of a text, as rows of cells; the line below the head is left out."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            found[-1].append(cells)
    return found


def table_with(text: str, head: str) -> dict[str, list[str]]:
    """The table whose first head is this one: first cell, without backquotes -> other cells."""
    chosen = [table for table in tables(text) if table[0][0] == head]
    assert len(chosen) == 1, f"expected one table with the head {head!r}, found {len(chosen)}"
    return {row[0].strip("`"): row[1:] for row in chosen[0][1:]}


def code_words(text: str) -> set[str]:
    """What stands in backquotes within the text."""
    return set(re.findall(r"`([^`\n]+)`", text))


# --- Snippets ---


@pytest.mark.parametrize("document", DOCUMENTS)
def test_snippets_run(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctests give what they say; blocks without prompts at least run. One namespace a page."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    failures: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for line, block in code_blocks(text_of(document)):
        if ">>>" not in block:
            exec(compile("\n" * line + block, document, "exec"), space)
            continue
        test = doctest.DocTestParser().get_doctest(block, space, document, document, line)
        test.globs = space  # the parser made a copy
        runner.run(test, out=failures.append, clear_globs=False)
    assert not failures, "\n".join(failures)
    assert not list(tmp_path.iterdir()), "a snippet has written a file"


def test_the_pages_with_snippets_have_some() -> None:
    for document, least in ((ENVIRONMENT, 10), (TRAINING, 3), ("docs/rules.md", 1)):
        assert len(code_blocks(text_of(document))) >= least, document


def test_failing_snippets_are_found() -> None:
    """The machinery above does not pass whatever the page says."""
    [(line, block)] = code_blocks("text\n\n```python\n>>> 1 + 1\n3\n```\nmore\n")
    assert (line, block) == (3, ">>> 1 + 1\n3\n")
    failures: list[str] = []
    test = doctest.DocTestParser().get_doctest(block, {}, "page", "page", line)
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert any("line 4" in failure for failure in failures)


# --- docs/environment.md ---


def test_layout_tables_are_the_generated_ones() -> None:
    text = text_of(ENVIRONMENT)
    written = re.findall(r"^\| field \| slice \|.*\n(?:\|.*\n)+", text, flags=re.MULTILINE)
    assert written == [layout_table("recall"), layout_table("table")]


def test_action_table_has_the_ranges_of_the_code() -> None:
    table = action_table(5)
    rows = table_with(text_of(ENVIRONMENT), "kind")
    assert tuple(rows) == KINDS
    for kind, (indices, number, _) in rows.items():
        actions = table.actions_of(kind)
        expected = f"{actions[0]}-{actions[-1]}" if len(actions) > 1 else str(actions[0])
        assert (indices, number) == (expected, str(len(actions))), kind


def test_numbers_of_actions() -> None:
    rows = [table for table in tables(text_of(ENVIRONMENT)) if table[0][0] == "h"]
    sizes = list(range(MIN_HAND_SIZE, MAX_HAND_SIZE + 1))
    assert rows == [
        [
            ["h", *map(str, sizes)],
            ["n", *(str(action_table(size).num_actions) for size in sizes)],
        ]
    ]


def test_formula_for_the_number_of_actions() -> None:
    """The formula as written on the page, evaluated."""
    formula = "2(2^h - 1) + 4 + C(h-1,2) + C(h-1,3) + C(h-1,4) + 1"
    assert f"n = {formula} actions" in re.sub(r"\s+", " ", text_of(ENVIRONMENT))
    python = formula.replace("2(", "2*(").replace("^", "**")
    for size in range(MIN_HAND_SIZE, MAX_HAND_SIZE + 1):
        value = eval(python, {"C": math.comb, "h": size})
        assert value == action_table(size).num_actions


def test_ids_are_those_registered() -> None:
    assert set(table_with(text_of(ENVIRONMENT), "id")) == set(ENV_IDS)


# --- docs/skirmish.md ---


def test_layout_table_of_skirmish_is_the_generated_one() -> None:
    written = re.findall(
        r"^\| field \| slice \|.*\n(?:\|.*\n)+", text_of(SKIRMISH), flags=re.MULTILINE
    )
    assert written == [skirmish_observations.layout_table(2)]
    sizes = [len(skirmish_observations.observation_high(n)) for n in (2, 3, 4)]
    assert "{}, {} and {} entries".format(*sizes) in text_of(SKIRMISH)


def test_switches_of_skirmish_are_the_fields_of_its_rules() -> None:
    (table,) = (table for table in tables(text_of(SKIRMISH)) if table[0][-1] == "other reading")
    written = {row[0].strip("`"): row[1].strip("`") for row in table[1:]}
    expected = {
        field.name: field.default if isinstance(field.default, str) else json.dumps(field.default)
        for field in fields(SkirmishRules)
    }
    assert written == expected


def test_agents_of_skirmish_are_those_registered() -> None:
    assert set(table_with(text_of(SKIRMISH), "agent")) == set(SKIRMISH_REGISTRY)


def test_arguments_of_skirmish_are_those_of_the_environment() -> None:
    parameters = inspect.signature(SkirmishEnv).parameters
    written = table_with(text_of(SKIRMISH), "argument")
    assert {name: cells[0].strip("`") for name, cells in written.items()} == {
        name: json.dumps(parameter.default) if parameter.default is not None else "None"
        for name, parameter in parameters.items()
    }


# --- docs/training.md ---


def config_fields(config: type, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> default of every field of a configuration."""
    found: dict[str, Any] = {}
    types = get_type_hints(config)
    for field in fields(config):
        if is_dataclass(types[field.name]):
            found |= config_fields(types[field.name], f"{field.name}.")
        elif field.default is not MISSING:
            found[prefix + field.name] = field.default
        else:
            assert field.default_factory is not MISSING
            found[prefix + field.name] = field.default_factory()
    return found


def test_configuration_table_has_every_field_and_its_default() -> None:
    rows = table_with(text_of(TRAINING), "field")
    written = {name: cells[0].strip("`") for name, cells in rows.items()}
    expected = {
        name: default if isinstance(default, str) else json.dumps(default)
        for name, default in config_fields(TrainConfig).items()
    }
    assert written == expected


def test_report_tables_have_every_key() -> None:
    text = text_of(EVALUATION)
    keys = [
        code_words(" ".join(row[0] for row in table))
        for table in tables(text)
        if table[0] == ["key", "meaning"]
    ]
    kinds = Report, AgentReport, Comparison, TableAgentReport, TableComparison
    assert keys == [set(get_type_hints(kind)) for kind in kinds]
    own = set(get_type_hints(TableReport)) - set(get_type_hints(Report))
    assert all(f"`{key}`" in text for key in own)


def test_options_of_evaluate() -> None:
    options = {
        option
        for action in evaluate.command_line()._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }
    written = table_with(text_of(EVALUATION), "option")
    assert {name.split()[0] for name in written} == options


def test_agents_are_those_registered() -> None:
    assert set(table_with(text_of(TRAINING), "name")) == set(REGISTRY)


# --- CONTRIBUTING.md ---


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", text_of(document), re.MULTILINE))
        assert {first or second for first, second in named} <= targets, document


# --- All of them ---


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings have where markdown is shown."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", outside, flags=re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in words}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
        if re.match(r"[a-z]+:", target):  # an address elsewhere
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / document).parent / name if name else ROOT / document
        assert path.exists(), f"{document}: {target}"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{document}: {target}"
