"""Load a catalogue of forms (``forms.yaml``) and check it: shape, sense, and (on request) against a live database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from staging.contracts.form import Catalogue
from workers.erp.checks.cross import cross_check
from workers.erp.checks.live import check_catalogue
from workers.erp.checks.problem import CatalogueInvalid, Problem
from workers.erp.checks.yaml_source import read_yaml

__all__ = ["CatalogueInvalid", "Problem", "check_catalogue", "load_catalogue", "parse_catalogue"]

_NAMED_BY = ("id", "name", "command_type", "source", "value")


def load_catalogue(path: Path) -> Catalogue:
    """Read ``path`` (UTF-8). Raises ``CatalogueInvalid`` with every problem, OSError if it cannot be read."""
    return parse_catalogue(path.read_text(encoding="utf-8"), str(path))


def parse_catalogue(text: str, source: str = "forms.yaml") -> Catalogue:
    """Like ``load_catalogue``, from text; ``source`` is what errors call it."""
    data, problem = read_yaml(text)
    if problem:
        raise CatalogueInvalid(source, [problem])
    if data is None:
        raise CatalogueInvalid(source, [Problem("(root)", "文件是空的", "the file is empty")])
    try:
        catalogue = Catalogue.model_validate(data)
    except ValidationError as error:
        raise CatalogueInvalid(source, _shape_problems(error, data)) from None
    problems = [p for p in cross_check(catalogue) if p.severity == "error"]
    if problems:
        raise CatalogueInvalid(source, problems)
    return catalogue


def _shape_problems(error: ValidationError, data: Any) -> list[Problem]:
    problems = []
    for item in error.errors(include_url=False):
        path = _path(item["loc"], data)
        match item["type"]:
            case "missing":
                zh, en = "缺少该项", "is missing"
            case "extra_forbidden":
                zh, en = "没有这个键", "there is no such key"
            case "value_error":
                en = item["msg"].removeprefix("Value error, ")
                zh = f"不合法：{en}"
            case _:
                zh, en = f"不合法：{item['msg']}", item["msg"]
        problems.append(Problem(path, zh, en))
    return problems


def _path(loc: Sequence[str | int], data: Any) -> str:
    """``forms[quotation].fields[customer].length``: entries by their name where they have one, else by number."""
    path, here = "", data
    for step in loc:
        if isinstance(step, int) and isinstance(here, list) and step < len(here):
            here = here[step]
            name = next((here[k] for k in _NAMED_BY if k in here), step) if isinstance(here, dict) else step
            path += f"[{name}]"
        elif isinstance(here, dict) and step in here:
            here = here[step]
            path += f".{step}"
        elif isinstance(here, dict):  # a missing key, or pydantic's name of a union's branch
            here = None
            path += f".{step}"
    return path.removeprefix(".") or "(root)"
