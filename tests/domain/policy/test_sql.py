from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.expressions import FUNCTION_BY_NAME

from schemas.strict_yaml import load_yaml
from services.domain.policy.sql import MAX_CHARS, UnreadableSql, sql_kind
from services.domain.policy.sql_dialects import DIALECTS, GRAMMAR, GRAMMAR_BEHIND, KINDS, OFFERED


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "SELECT name, count(*) FROM users WHERE city = 'Oslo' GROUP BY name HAVING count(*) > 3 ORDER BY 2 LIMIT 5;",
        "select * from a join b on a.id = b.id where exists (select 1 from c where c.x = a.x)",
        "with recursive t as (select 1 as n union all select n + 1 from t where n < 5) select * from t",
        "(select 1) union (select 2)",
        "values (1), (2)",
        "select cast(a as int), a::text, coalesce(a, 'it''s'), upper(trim(b)) from t where c = $1 and d = ?",
        'select "Col" from "T"',
        "select date '2026-01-01' + interval '1 day'",
        "select a[1], row_number() over (partition by b order by c) from t",
    ],
)
def test_sql_kind_reading_is_select(sql: str) -> None:
    assert sql_kind(sql) == "select"


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("insert into t values (1)", "insert"),
        ("update t set a = 1", "update"),
        ("delete from t", "delete"),
        ("drop table t", "ddl"),
        ("create table t as select 1", "ddl"),
        ("alter table t add column a int", "ddl"),
        ("truncate table t", "ddl"),
        ("merge into t using s on t.a = s.a when matched then delete", "other"),
        ("grant select on t to u", "other"),
        ("call f()", "other"),
        ("copy t to '/tmp/x'", "other"),
        ("pragma table_info(t)", "other"),
        ("explain analyze select 1", "other"),
        ("set x = 1", "other"),
        ("begin", "other"),
        ("exec xp_cmdshell 'dir'", "other"),
        ("replace into t values (1)", "other"),
    ],
)
def test_sql_kind_statement_has_its_kind(sql: str, kind: str) -> None:
    assert sql_kind(sql) == kind


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("select 1; drop table t", "ddl"),
        ("select 1; insert into t values (1); select 2", "insert"),
        ("delete from t; update t set a = 1", "delete"),
        ("with x as (delete from t returning *) select * from x", "delete"),
        ("with x as (insert into t values (1) returning *) select * from x", "insert"),
        ("with x as (select 1) insert into t select * from x", "insert"),
        ("select * into copy from t", "other"),
        ("select 1 union select 2 into x", "other"),
        ("select * from t for update", "other"),
        ("select @a := 1", "other"),
        ("select pg_terminate_backend(1)", "other"),
        ("select setval('s', 1)", "other"),
        ("select nextval('s')", "other"),
        ("select lo_import('/etc/passwd')", "other"),
        ("select load_extension('x')", "other"),
        ("select * from dblink('x', 'delete from t')", "other"),
        ("select * from read_csv('/etc/passwd')", "other"),
        ("select public.lower(x) from t", "other"),
        ("select (select setval('s', 1))", "other"),
        ("select 1 delete from t", "other"),
        ("select a from t exec", "other"),
        ("update t set a = (select pg_sleep(1))", "other"),
    ],
)
def test_sql_kind_write_in_disguise_is_not_select(sql: str, kind: str) -> None:
    assert sql_kind(sql) == kind


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";;",
        "find the cats",
        "SELEC * FORM t",
        "select 1 exec xp_cmdshell 'dir'",
        "do $$ begin delete from t; end $$",
        "select a into outfile '/tmp/x' from t",
        "select " + "(" * 500 + "1" + ")" * 500,
        "select 1 " + " " * MAX_CHARS,
    ],
)
def test_sql_kind_unreadable_is_an_error(sql: str) -> None:
    with pytest.raises(UnreadableSql):
        sql_kind(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 'a\\''; drop table t; -- '",  # MySQL ends the string at the third quote
        "select 1 --1; drop table t",  # a comment, but not to MySQL
        "select 1 # ' \n ; drop table t #'",  # MySQL's comment hides the quote
        "select /* /* */ 1 ; drop table t -- */",  # comments nest in PostgreSQL only
        "select 1 /*! into outfile '/tmp/x' */",  # MySQL runs it
        "select $$ ' $$ ; drop table t; select ' '",  # PostgreSQL's dollar quotes
        "select $a$ ' $a$ ; drop table t; select ' '",
        "select ''' ' ''' ; drop table t; select ' ' '",  # BigQuery's triple quotes
        "select [ ' ] ; drop table t; select [ ' ]",  # T-SQL's names in brackets
        "select q'[']' ; drop table t; select q'[']'",  # Oracle's quotes
        "select E'a'",
        "select ` ' ` ; drop table t; select ` ' `",
        "select\u00a01",
    ],
)
def test_sql_kind_text_that_databases_read_differently_is_an_error(sql: str) -> None:
    with pytest.raises(UnreadableSql):
        sql_kind(sql)


def test_sql_kind_named_dialect_reads_its_own_quotes() -> None:
    assert sql_kind("select `a` from `b` where c = 'it\\'s'", "mysql") == "select"
    assert sql_kind("select * from t where a = $$it's$$", "postgres") == "select"
    assert sql_kind("select 1 --1; drop table t", "mysql") == "ddl"


@pytest.mark.parametrize(
    "sql", ["select 1 /*! into outfile '/tmp/x' */", "select 1 -- 1", "select 1 # x", "select 1 /* x */"]
)
def test_sql_kind_named_dialect_still_refuses_comments(sql: str) -> None:
    with pytest.raises(UnreadableSql):
        sql_kind(sql, "mysql")


@pytest.mark.parametrize("value", [None, 5, ["select 1"], {"a": 1}])
def test_sql_kind_no_text_is_an_error(value: Any) -> None:
    with pytest.raises((UnreadableSql, TypeError)):
        sql_kind(value)


WORDS = (
    "select insert update delete drop into from where table t a 1 'x' ( ) , ; * = with as union -- /* \\ ' $$"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=14))
def test_sql_kind_any_words_have_a_kind_or_an_error(words: list[str]) -> None:
    sql = " ".join(words)
    try:
        kind = sql_kind(sql)
    except UnreadableSql:
        return
    assert kind in KINDS
    if {"insert", "update", "delete", "drop", "into"} & set(words) and "'" not in sql and '"' not in sql:
        assert kind != "select"


CORPUS = load_yaml((Path(__file__).parent / "corpus" / "sql.yaml").read_text(encoding="utf-8"))
EVERY = ("", *OFFERED)


def kind_or_refused(sql: str, dialect: str) -> str:
    """The kind, or "refused" where it cannot be told."""
    try:
        return sql_kind(sql, dialect)
    except UnreadableSql:
        return "refused"


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize("sql", CORPUS["reads"])
def test_sql_kind_what_every_database_reads_is_select(sql: str, dialect: str) -> None:
    assert sql_kind(sql, dialect) == "select"


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize("case", CORPUS["more"], ids=lambda case: case["sql"])
def test_case_33_sql_that_more_than_reads_is_select_in_no_dialect(case: dict[str, str], dialect: str) -> None:
    found = kind_or_refused(case["sql"], dialect)

    assert found != "select"
    assert found == case.get("kind", found)


@pytest.mark.parametrize(
    ("dialect", "case"),
    [(dialect, case) for dialect, cases in CORPUS["of"].items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else value["sql"],
)
def test_case_33_sql_of_one_dialect_has_its_kind(dialect: str, case: dict[str, str]) -> None:
    found = kind_or_refused(case["sql"], dialect)

    assert found == case["kind"] if "kind" in case else found != "select"


@pytest.mark.parametrize("sql", CORPUS["without_a_dialect"])
def test_case_33_what_oracle_may_take_for_a_call_is_other_without_a_dialect(sql: str) -> None:
    assert sql_kind(sql) == "other"


def test_case_33_corpus_has_every_dialect_that_is_offered() -> None:
    assert set(CORPUS["of"]) == set(OFFERED)


@pytest.mark.parametrize("dialect", ["oracle", "hive", "clickhouse", "nonsense"])
def test_case_33_dialect_without_a_list_is_an_error(dialect: str) -> None:
    with pytest.raises(UnreadableSql, match="name one of bigquery"):
        sql_kind("select 1", dialect)


@pytest.mark.parametrize("dialect", OFFERED)
def test_case_33_function_of_another_dialect_is_other(dialect: str) -> None:
    functions = DIALECTS[dialect].functions
    foreign = {name for every in DIALECTS.values() for name in every.functions} - functions - GRAMMAR

    for name in sorted(foreign):
        assert kind_or_refused(f"select {name}(a, b) from t", dialect) != "select", name


@pytest.mark.parametrize("dialect", EVERY)
def test_case_33_every_function_that_sqlglot_knows_is_other_unless_listed(dialect: str) -> None:
    listed = DIALECTS[dialect].functions | GRAMMAR | GRAMMAR_BEHIND.keys()

    for name in sorted(set(FUNCTION_BY_NAME) - listed):
        assert kind_or_refused(f"select {name}(a) from t", dialect) != "select", name


ATTRIBUTES = [
    "select (t).purge from t",
    "select ((t)).purge from t",
    "select (t.*).purge from t",
    "select (select t).purge from t",
    "select (array[t])[1].purge from t",
    "select coalesce(t, null).purge from t",
    "select (x.t).purge from (select t from t) as x",
    "select a from t where (t).purge is not null",
    "select a from t order by (t).purge",
    "delete from t where (t).purge is null",
]


@pytest.mark.parametrize("dialect", ["", "postgres", "redshift", "tsql", "mysql", "sqlite"])
@pytest.mark.parametrize("sql", ATTRIBUTES)
def test_case_33_field_of_a_value_is_other_where_it_may_be_a_call(sql: str, dialect: str) -> None:
    try:
        assert sql_kind(sql, dialect) == "other"
    except UnreadableSql:
        assert "array" in sql


@pytest.mark.parametrize("dialect", ["bigquery", "databricks", "duckdb", "snowflake", "spark", "trino"])
def test_field_of_a_value_is_a_field_where_nothing_is_called_so(dialect: str) -> None:
    assert sql_kind("select (t.a).b from t", dialect) == "select"
    assert sql_kind("select (t.a).b() from t", dialect) == "other"


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("select o.id, dbo.orders.id from dbo.orders join Orders o on o.id = orders.id", "select"),
        ("select O.id from orders o", "select"),
        ("insert into t (a) output inserted.a values (1)", "insert"),
        # A property of a column's type: somebody's own code.
        ("select place.Lat from t", "other"),
        ("select t.place.Lat from t", "other"),
        ("select dbo.t.place.Lat from dbo.t", "other"),
        ("select t.b.Lat from t join b on t.a = b.a", "other"),
    ],
)
def test_case_33_property_of_a_column_is_other_in_sql_server(sql: str, kind: str) -> None:
    assert sql_kind(sql, "tsql") == kind
