"""`sql_kind()`: the strictest effect of an SQL text, by sqlglot; SQL that may do more than read is never "select".

A statement is "select" only if all of it is on its dialect's list (`services.domain.policy.sql_dialects`): each
node of its tree, each clause, each word before a bracket, each type and table.
"""

import re
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

from sqlglot import Dialect as Grammar
from sqlglot import Token, TokenType, exp, parse

from services.domain.policy.sql_dialects import (
    CHANGED_ROWS,
    DIALECTS,
    FIELDS,
    FILES,
    GRAMMAR,
    GRAMMAR_BEHIND,
    KINDS,
    OFFERED,
    SEQUENCES,
    Dialect,
)
from services.domain.policy.sql_nodes import CLAUSES, NODES

MAX_CHARS = 20_000
_OTHER_KINDS = frozenset({"ddl", "other"})
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
# quotes, no prefixes before a quote, no triple quotes, no quotes inside brackets. In other text, a string of one
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
_WRITES: tuple[tuple[type[Any], str], ...] = (
    (exp.Insert, "insert"),
    (exp.Update, "update"),
    (exp.Delete, "delete"),
    (exp.DDL, "ddl"),
    (exp.TruncateTable, "ddl"),
)
# T-SQL needs no semicolon: it reads `SELECT 1 DELETE FROM t` as two statements, and DELETE is not an alias.
_TSQL_WORDS = """
    ADD ALTER BACKUP BEGIN BREAK BULK CHECKPOINT CLOSE COMMIT CONTINUE CREATE DBCC DEALLOCATE
    DECLARE DELETE DENY DISABLE DROP DUMP ENABLE EXEC EXECUTE FETCH GOTO GRANT IF INSERT KILL LOAD
    MERGE MOVE OPEN PRINT RAISERROR READTEXT RECEIVE RECONFIGURE RESTORE RETURN REVERT REVOKE
    ROLLBACK SAVE SEND SET SETUSER SHUTDOWN THROW TRUNCATE UPDATE UPDATETEXT USE WAITFOR WHILE WITH
    WRITETEXT
"""
_TSQL_STARTS = frozenset(_TSQL_WORDS.split())
_READING_ROOTS = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_PLAIN_NAME = re.compile(r"[^\W\d][\w $#-]*")
_NAME = re.compile(r"\w|[^\x00-\x7f]")
_TEXT_TOKENS = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.NATIONAL_STRING})
_OWN_TYPES = frozenset({exp.DataType.Type.USERDEFINED, exp.DataType.Type.UNKNOWN})


class UnreadableSql(ValueError):
    """The effect of the text is uncertain."""


@lru_cache(maxsize=1024)
def sql_kind(sql: str, dialect: str = "") -> str:
    """The strictest kind among the text's statements.

    Args:
        sql: one or more statements, at most 20,000 characters.
        dialect: one of `OFFERED`; empty: only text that all dialects read alike.

    Returns:
        "select" (no statement does more than read; effects of the schema's own objects are not covered), "insert",
        "update", "delete", "ddl", or "other".

    Raises:
        UnreadableSql: not a text, too long, not parsed, or read differently by different databases.
    """
    if not isinstance(sql, str) or len(sql) > MAX_CHARS:
        raise UnreadableSql(f"sql_kind() reads a text of at most {MAX_CHARS} characters")
    if dialect not in DIALECTS:
        raise UnreadableSql(f"unsupported SQL dialect {dialect[:40]!r}; name one of {', '.join(OFFERED)}")
    if not dialect and _COMMON_TEXT.fullmatch(sql) is None:
        raise UnreadableSql(
            "databases differ about comments, backslashes or quotes in this SQL; name the dialect"
        )
    try:
        statements = _statements(sql, dialect)
        kinds = [_statement_kind(statement, DIALECTS[dialect]) for statement in statements]
    except UnreadableSql:
        raise
    except Exception as error:
        # For some texts sqlglot's own code fails with IndexError and other errors, in addition to its syntax errors.
        raise UnreadableSql(f"the SQL cannot be parsed: {str(error)[:200]}") from error
    if not kinds:
        raise UnreadableSql("the SQL is empty")
    return max(kinds, key=KINDS.index)


class _Statement(NamedTuple):
    """One statement: its text, and its tokens in order."""

    text: str
    tokens: tuple[Token, ...]

    @property
    def first(self) -> str:
        """Its first word."""
        return self.tokens[0].text.upper()


def _statements(sql: str, dialect: str) -> list[_Statement]:
    """The statements, split at the dialect's own tokens."""
    tokens = Grammar.get_or_raise(dialect or None).tokenize(sql)
    # MySQL runs some comments, and `--1` is a comment only in some databases; sqlglot drops them all.
    if "/*!" in sql or "/*M!" in sql or any(token.comments for token in tokens):
        raise UnreadableSql("write the SQL without comments")
    statements: list[_Statement] = []
    start = 0
    for index in range(len(tokens) + 1):
        if index == len(tokens) or tokens[index].text == ";":
            if index > start:
                text = sql[tokens[start].start : tokens[index - 1].end + 1]
                statements.append(_Statement(text, tuple(tokens[start:index])))
            start = index + 1
    return statements


def _statement_kind(statement: _Statement, dialect: Dialect) -> str:
    first = statement.first
    if first in _OTHER:
        return "other"
    if first in _DDL:
        return "ddl"
    if first not in _READS and first not in _DML:
        raise UnreadableSql(f"{first[:40]!r} does not begin a known statement")
    trees = parse(statement.text, read=dialect.name or None)
    tree = trees[0]
    if len(trees) != 1 or tree is None:
        raise UnreadableSql("one statement was parsed as several")
    kind = _tree_kind(tree, dialect)
    if kind in _OTHER_KINDS or (
        _calls_are_known(statement, tree, dialect) and _names_are_columns(tree, dialect)
    ):
        return kind
    return "other"


def _tree_kind(tree: Any, dialect: Dialect) -> str:
    kinds = {_node_kind(node, dialect) for node in tree.walk()}
    if not isinstance(tree, (*_READING_ROOTS, exp.Insert, exp.Update, exp.Delete)):
        return "other"
    return max(kinds, key=KINDS.index)


def _node_kind(node: Any, dialect: Dialect) -> str:
    for kind, name in _WRITES:
        if isinstance(node, kind):
            return name
    return "select" if _only_reads(node, dialect) else "other"


def _only_reads(node: Any, dialect: Dialect) -> bool:
    kind = type(node)
    if kind not in NODES:
        return False
    clauses = CLAUSES.get(kind)
    if clauses is not None and any(value and name not in clauses for name, value in node.args.items()):
        return False
    if kind is exp.Identifier or kind is exp.Var:
        name = node.name.upper()
        return name not in SEQUENCES and (bool(node.args.get("quoted")) or name not in _TSQL_STARTS)
    if kind is exp.Table:
        return _is_plain_table(node)
    if kind is exp.Parameter:
        # `$1` only reads; `@name` can be assigned inside the expression.
        return isinstance(node.this, exp.Literal) or dialect.name == "bigquery"
    if kind is exp.DataType:
        # A cast to a user-defined type calls its function.
        return isinstance(node.parent, exp.Cast | exp.Convert | exp.DataType) and node.this not in _OWN_TYPES
    # `schema.lower(x)` is a user-defined function with a known name.
    return kind is not exp.Dot or (dialect.name in FIELDS and isinstance(node.expression, exp.Identifier))


def _is_plain_table(table: Any) -> bool:
    """True if it is named like a table, not like a file or a remote source."""
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    names = [part.name for part in parts]
    if len(parts) != len(table.parts) or not all(map(_PLAIN_NAME.fullmatch, names)):
        return False
    return len(names) == 1 or not FILES & {name.upper() for name in names}


def _calls_are_known(statement: _Statement, tree: Any, dialect: Dialect) -> bool:
    """True if each word before a bracket is grammar, a function on the list, or the name of a list of columns."""
    unknown: Counter[str] = Counter()
    for index, token in enumerate(statement.tokens[1:]):
        before = statement.tokens[index]
        if token.token_type is not TokenType.L_PAREN or not _NAME.match(before.text):
            continue
        if before.token_type in _TEXT_TOKENS:
            continue
        word = before.text.upper()
        quoted = before.token_type is TokenType.IDENTIFIER
        behind = GRAMMAR_BEHIND.get(word, frozenset())
        is_grammar = word in GRAMMAR or (index > 0 and statement.tokens[index - 1].text.upper() in behind)
        if quoted or not (is_grammar or word in dialect.functions):
            unknown[before.text] += 1
    named = Counter(alias.name for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns"))
    named += Counter(
        schema.this.name for schema in tree.find_all(exp.Schema) if isinstance(schema.this, exp.Table)
    )
    return unknown <= named


def _names_are_columns(tree: Any, dialect: Dialect) -> bool:
    """True if no name can be a call: of a function without brackets, or of code behind a column."""
    if dialect.name == "tsql":
        return _names_are_of_tables(tree)
    if dialect.name:
        return True
    # Oracle calls functions without brackets.
    tables = list(tree.find_all(exp.Table))
    known = {table.alias_or_name for table in tables} | {table.name for table in tables}
    known |= {alias.name for alias in tree.find_all(exp.TableAlias)}
    columns = list(tree.find_all(exp.Column))
    return (
        (bool(tables) or not columns)
        and "DUAL" not in {name.upper() for name in known}
        and all(not column.table or column.table in known for column in columns)
    )


def _names_are_of_tables(tree: Any) -> bool:
    """True if each name before a column is a table, not a column whose type has code behind its fields."""
    tables = list(tree.find_all(exp.Table))
    known = {table.alias_or_name.lower() for table in tables} | CHANGED_ROWS
    known |= {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    of_schemas = {(table.db.lower(), table.name.lower()) for table in tables}
    return all(
        (column.db.lower(), column.table.lower()) in of_schemas
        if column.db
        else not column.table or column.table.lower() in known
        for column in tree.find_all(exp.Column)
    )
