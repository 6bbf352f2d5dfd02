"""Editing the text of a SQLite CREATE TABLE leaves all of it to the letter but for the edit."""

from __future__ import annotations

import sqlite3

import pytest

from migrations.adoption.sqlite_text import parse

ODD = """CREATE TABLE "q,(" ( -- made by hand, (long ago)
  sId TEXT COLLATE NOCASE NOT NULL, /* the id, ( */ [two words] INT DEFAULT (1 + (2)),
  `back``tick` TEXT DEFAULT 'it''s, ok)' -- a comment at the end
  , "sUserId" VARCHAR(10) NOT NULL CHECK ("sUserId" <> ','), CONSTRAINT "ck, one" CHECK (length(sId) > 0),
  UNIQUE (sId, [two words])
) -- the end"""


def columns(sql: str) -> list[tuple[str, int, str | None]]:
    """(name, NOT NULL, default) of each column, by SQLite itself."""
    connection = sqlite3.connect(":memory:")
    connection.execute(sql)
    (table,) = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()
    rows = connection.execute(
        'SELECT name, "notnull", dflt_value FROM pragma_table_info(?)', (table,)
    ).fetchall()
    connection.close()
    return rows


def test_what_is_not_edited_stays_to_the_letter() -> None:
    assert str(parse(ODD)) == ODD


def test_columns_go_before_constraints_and_constraints_to_the_end() -> None:
    edited = parse(ODD).with_columns(["a INT NOT NULL DEFAULT 5", "b TEXT"])
    edited = edited.with_constraints(["CONSTRAINT pk PRIMARY KEY (a)"])
    assert columns(str(edited)) == [*columns(ODD), ("a", 1, "5"), ("b", 0, None)]
    assert str(edited.without({"A", "b"}, {"PK"})) == ODD


def test_a_default_is_set_and_taken_back() -> None:
    edited = parse(ODD).with_default("suserid", "''")
    assert columns(str(edited))[3] == ("sUserId", 1, "''")
    assert str(edited.without_default("sUserId")) == ODD
    assert str(parse(ODD).without_default("two words")) == ODD  # a default that was there before stays


def test_not_null_and_collation_are_taken_away_from_one_column_only() -> None:
    assert [c[1] for c in columns(str(parse(ODD).with_null("sId")))] == [0, 0, 0, 1]
    assert parse(ODD).collation("SID") == "NOCASE"
    assert str(parse(ODD).with_binary("sId")) == ODD.replace("COLLATE NOCASE", "")
    assert parse(str(parse(ODD).with_binary("sId"))).collation("sId") == ""
    assert parse(ODD).collation("sUserId") == ""


def test_named_constraints_are_found_by_name() -> None:
    assert '"ck, one"' not in str(parse(ODD).without(set(), {"ck, one"}))


@pytest.mark.parametrize(
    ("tail", "strict"), [("", False), (" STRICT", True), (" WITHOUT ROWID, strict", True)]
)
def test_a_strict_table_is_known_as_one(tail: str, strict: bool) -> None:
    assert parse(f"CREATE TABLE t (strict TEXT){tail}").is_strict is strict


def test_a_statement_without_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="not a plain CREATE TABLE"):
        parse("CREATE TABLE t AS SELECT 1")
