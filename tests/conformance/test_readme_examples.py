"""The examples of both READMEs, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from staging.contracts.status import StatusCode as C
from tests.conformance.conftest import Product
from tests.support.processes import clean_environment
from workers.erp.demo import oracle

ROOT = Path(__file__).resolve().parents[2]


def block(readme: str, language: str) -> str:
    """The first code block of that language."""
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / readme).read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found.group(1)


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_staging_from_python(product: Product, readme: str, tmp_path: Path) -> None:
    before = product.ask(oracle.count, "quo_quotationmaster", sTitle="2027 台历")
    source = block(readme, "python").replace("2027 台历", f"2027 台历 {readme}")
    result = subprocess.run(
        [sys.executable, "-c", source],
        env=clean_environment(product.env),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "BJD" in result.stdout.splitlines()[-1]
    assert product.ask(oracle.count, "quo_quotationmaster", sTitle=f"2027 台历 {readme}") == 1
    assert product.ask(oracle.count, "quo_quotationmaster", sTitle="2027 台历") == before


def test_staging_by_plain_sql(product: Product) -> None:
    statement = block("README.md", "sql").replace("my-own-id-0001", "readme-0001")
    assert statement == block("README.zh-CN.md", "sql").replace("my-own-id-0001", "readme-0001")
    if product.queue.dialect.name in ("mysql", "mariadb"):
        statement = statement.replace('"s', "`s").replace('"b', "`b").replace('"i', "`i").replace('",', "`,")
        statement = statement.replace('")', "`)")
    with product.queue.begin() as connection:
        connection.exec_driver_sql(statement)
    assert product.ended("u-lin", "readme-0001").code == C.EXECUTED
    assert product.ask(oracle.one, "elecustomer", sBrandsId="B001", sCustomerNo="KH0001").sContact == "王小姐"
