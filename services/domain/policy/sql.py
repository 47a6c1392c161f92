"""`sql_kind()`: what an SQL text does at most, by sqlglot; what is not surely read-only is not "select"."""

import re
from functools import lru_cache
from typing import Any

from sqlglot import Dialect, ParseError, TokenError, exp, parse

MAX_CHARS = 20_000
# From harmless to strict; a text of several statements is as strict as its strictest.
KINDS = ("select", "insert", "update", "delete", "ddl", "other")
_READS = frozenset({"SELECT", "WITH", "VALUES", "("})
_DML = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
_DDL = frozenset({"CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT", "RENAME"})
_OTHER_WORDS = """
    ANALYZE ATTACH BEGIN CALL CHECKPOINT CLUSTER COMMIT COPY DECLARE DESC DESCRIBE DETACH DO EXEC
    EXECUTE EXPLAIN EXPORT FLUSH GRANT HANDLER IMPORT INSTALL KILL LISTEN LOAD LOCK MERGE NOTIFY
    OPTIMIZE PRAGMA PREPARE REFRESH REINDEX REPLACE RESET REVOKE ROLLBACK SAVEPOINT SET SHOW START
    UNLOCK USE VACUUM
"""
_OTHER = frozenset(_OTHER_WORDS.split())
# Text whose strings begin and end at the same places in every dialect: no comments, no backslashes, no dollar
# quotes, no prefixes before a quote, no triple quotes, no quotes inside brackets. Elsewhere a string of one
# dialect can hide a statement of another.
_COMMON_TEXT = re.compile(
    r"""(?: '(?!'')(?:[^'\\]|'')*+'(?!['\w])
          | "(?!"")(?:[^"\\]|"")*+"(?!["\w])
          | `[\w .-]+`
          | \[[\w .,:+*-]*\]
          | \w++(?!['"`])
          | \$[0-9]++(?![$\w])
          | -(?!-) | /(?![/*])
          | [\s(),;.*+%<>=!~|^?:@{}]
          | &(?!['"])
        )*+""",
    re.VERBOSE | re.ASCII,
)
_PURE_FUNCTIONS: tuple[type[Any], ...] = (
    exp.And, exp.Or, exp.Xor, exp.Abs, exp.Avg, exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Ceil,
    exp.Coalesce, exp.Concat, exp.ConcatWs, exp.Contains, exp.Count, exp.CountIf, exp.CumeDist,
    exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Date, exp.DateAdd, exp.DateDiff,
    exp.DateSub, exp.DateTrunc, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear,
    exp.DenseRank, exp.EndsWith, exp.Exists, exp.Exp, exp.Extract, exp.First, exp.FirstValue,
    exp.Floor, exp.Greatest, exp.GroupConcat, exp.Hour, exp.Initcap, exp.JSONExtract,
    exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.Lag, exp.Last,
    exp.LastValue, exp.Lead, exp.Least, exp.Left, exp.Length, exp.Ln, exp.Log, exp.Lower, exp.Max,
    exp.Median, exp.Min, exp.Minute, exp.Month, exp.NthValue, exp.Ntile, exp.Nullif,
    exp.PercentRank, exp.PercentileCont, exp.PercentileDisc, exp.Pow, exp.Quarter, exp.Rank,
    exp.RegexpLike, exp.Replace, exp.Reverse, exp.Right, exp.Round, exp.RowNumber, exp.Second,
    exp.Sign, exp.SplitPart, exp.Sqrt, exp.StartsWith, exp.Stddev, exp.StddevPop, exp.StddevSamp,
    exp.StrPosition, exp.Substring, exp.Sum, exp.TimeToStr, exp.Timestamp, exp.TimestampTrunc,
    exp.ToChar, exp.Trim, exp.Upper, exp.Variance, exp.Week, exp.Year, exp.ArrayAgg,
)  # fmt: skip
_WRITES: tuple[tuple[type[Any], str], ...] = (
    (exp.Insert, "insert"),
    (exp.Update, "update"),
    (exp.Delete, "delete"),
    (exp.DDL, "ddl"),
    (exp.TruncateTable, "ddl"),
)
# T-SQL needs no semicolon: to it, `SELECT 1 DELETE FROM t` is two statements and DELETE no alias.
_TSQL_WORDS = """
    ADD ALTER BACKUP BEGIN BREAK BULK CHECKPOINT CLOSE COMMIT CONTINUE CREATE DBCC DEALLOCATE
    DECLARE DELETE DENY DISABLE DROP DUMP ENABLE EXEC EXECUTE FETCH GOTO GRANT IF INSERT KILL LOAD
    MERGE MOVE OPEN PRINT RAISERROR READTEXT RECEIVE RECONFIGURE RESTORE RETURN REVERT REVOKE
    ROLLBACK SAVE SEND SET SETUSER SHUTDOWN THROW TRUNCATE UPDATE UPDATETEXT USE WAITFOR WHILE WITH
    WRITETEXT
"""
_TSQL_STARTS = frozenset(_TSQL_WORDS.split())
# SELECT ... INTO, row locks, user variables (@x := 1), and statements that sqlglot keeps as text.
_NEVER_READS = (exp.Into, exp.Lock, exp.PropertyEQ, exp.Command, exp.DML)
_READING_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


class UnreadableSql(ValueError):
    """What the text does cannot be told for sure."""


@lru_cache(maxsize=1024)
def sql_kind(sql: str, dialect: str = "") -> str:
    """The strictest kind among the text's statements.

    Args:
        sql: one or more statements, at most 20,000 characters.
        dialect: sqlglot's name of the database's dialect; empty: only text that all dialects read alike.

    Returns:
        "select" (surely without side effects), "insert", "update", "delete", "ddl", or "other".

    Raises:
        UnreadableSql: not a text, too long, not parsed, or read differently by different databases.
    """
    if not isinstance(sql, str) or len(sql) > MAX_CHARS:
        raise UnreadableSql(f"sql_kind() reads a text of at most {MAX_CHARS} characters")
    if not dialect and _COMMON_TEXT.fullmatch(sql) is None:
        raise UnreadableSql(
            "databases differ about comments, backslashes or quotes in this SQL; name the dialect"
        )
    try:
        statements = _statements(sql, dialect)
        kinds = [_statement_kind(statement, dialect) for statement in statements]
    except (ParseError, TokenError, RecursionError) as error:
        raise UnreadableSql(f"the SQL cannot be parsed: {str(error)[:200]}") from error
    if not kinds:
        raise UnreadableSql("the SQL is empty")
    return max(kinds, key=KINDS.index)


def is_dialect(name: str) -> bool:
    """Whether sqlglot knows the dialect."""
    return bool(name) and Dialect.get(name) is not None


def _statements(sql: str, dialect: str) -> list[tuple[str, str]]:
    """The statements as (first word, text), split where the dialect's own tokens say."""
    tokens = Dialect.get_or_raise(dialect or None).tokenize(sql)
    # MySQL runs some comments, and `--1` is one only to some; sqlglot drops them all.
    if "/*!" in sql or "/*M!" in sql or any(token.comments for token in tokens):
        raise UnreadableSql("write the SQL without comments")
    statements: list[tuple[str, str]] = []
    start = 0
    for index in range(len(tokens) + 1):
        if index == len(tokens) or tokens[index].text == ";":
            if index > start:
                text = sql[tokens[start].start : tokens[index - 1].end + 1]
                statements.append((tokens[start].text.upper(), text))
            start = index + 1
    return statements


def _statement_kind(statement: tuple[str, str], dialect: str) -> str:
    first, text = statement
    if first in _OTHER:
        return "other"
    if first in _DDL:
        return "ddl"
    if first not in _READS and first not in _DML:
        raise UnreadableSql(f"{first[:40]!r} does not begin a statement that can be read")
    trees = parse(text, read=dialect or None)
    if len(trees) != 1 or trees[0] is None:
        raise UnreadableSql("one statement was parsed as several")
    return _tree_kind(trees[0])


def _tree_kind(tree: Any) -> str:
    kinds = {_node_kind(node) for node in tree.walk()}
    if not isinstance(tree, (*_READING_ROOTS, exp.Insert, exp.Update, exp.Delete)):
        return "other"
    return max(kinds, key=KINDS.index)


def _node_kind(node: Any) -> str:
    for kind, name in _WRITES:
        if isinstance(node, kind):
            return name
    if isinstance(node, _NEVER_READS):
        return "other"
    if isinstance(node, exp.Func) and not isinstance(node, _PURE_FUNCTIONS):
        return "other"
    if isinstance(node, exp.Identifier | exp.Var) and not node.args.get("quoted"):
        return "other" if node.name.upper() in _TSQL_STARTS else "select"
    # `schema.lower(x)` is somebody's own function with a known name.
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return "other"
    return "select"
