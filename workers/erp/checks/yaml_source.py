"""YAML without surprises: no floats, no ``no`` that is false, no dates, no key twice."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml

from workers.erp.checks.problem import Problem

_MAP = "tag:yaml.org,2002:map"


class _Loader(yaml.SafeLoader):
    """Scalars are null, true/false, plain whole numbers, plain decimals (exact), or text."""

    yaml_implicit_resolvers: dict[str, Any] = {}


_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), list("tf"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+\Z"), list("-0123456789")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<\Z"), ["<"])


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> Decimal:
    return Decimal(str(loader.construct_scalar(node)))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key!r} comes twice", key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:float", _decimal)
_Loader.add_constructor(_MAP, _mapping)


def read_yaml(text: str) -> tuple[Any, Problem | None]:
    """Return the data of ``text`` (mappings, lists, str, int, Decimal, bool, None), or a problem and its place."""
    try:
        return yaml.load(text, Loader=_Loader), None  # noqa: S506 - a SafeLoader with fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "?"
        return None, Problem(where, f"不是合法的YAML：{error.problem}", f"not valid YAML: {error.problem}")
    except yaml.YAMLError as error:
        return None, Problem("?", f"不是合法的YAML：{error}", f"not valid YAML: {error}")
