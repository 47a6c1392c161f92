"""The allowed content of a reading statement, for each dialect that `sql_kind()` supports.

An allow-list, in the database's own words: anything else may write, call a user-defined function, or start a
program, and is never "select". A name is in a dialect's list only if that database has it built in and it changes
nothing: in another database the same name may be a user-defined function.
"""

from collections.abc import Mapping

from msgspec import Struct

# The answers of `sql_kind()`, from harmless to strict; a text of several statements is as strict as its strictest.
KINDS = ("select", "insert", "update", "delete", "ddl", "other")
_EVERYWHERE = """
    ABS AVG CAST COALESCE COUNT CUME_DIST DENSE_RANK FIRST_VALUE LAG LAST_VALUE LEAD LENGTH LOWER LTRIM MAX MIN
    NTILE NULLIF PERCENT_RANK RANK REPLACE ROUND ROW_NUMBER RTRIM SUM TRIM UPPER
"""
_MATHS = "CEIL CEILING EXP FLOOR LN MOD POWER SIGN SQRT"
_STATISTICS = "STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP"
_TEXTS = "CONCAT LEFT REVERSE RIGHT SUBSTRING"
_CHOICES = "GREATEST LEAST"
_POSTGRES = f"""
    {_MATHS} {_STATISTICS} {_TEXTS} {_CHOICES} ARRAY_AGG BTRIM CHAR_LENGTH CONCAT_WS DATE_PART DATE_TRUNC
    EXTRACT INITCAP NTH_VALUE PERCENTILE_CONT PERCENTILE_DISC POSITION SPLIT_PART STARTS_WITH STRING_AGG STRPOS
    SUBSTR TO_CHAR TO_DATE
"""
_SPARK = f"""
    {_MATHS} {_STATISTICS} {_TEXTS} {_CHOICES} ARRAY_AGG COLLECT_LIST COLLECT_SET CONCAT_WS DATE DATEDIFF DATE_ADD
    DATE_FORMAT DATE_SUB DATE_TRUNC DAY EXTRACT HOUR IF IFNULL INITCAP MEDIAN MINUTE MONTH NTH_VALUE NVL QUARTER
    SECOND SPLIT_PART SUBSTR TO_DATE TRY_CAST YEAR
"""
_BUILT_IN = {
    "": "",
    "bigquery": f"""
        {_MATHS} {_STATISTICS} {_TEXTS} {_CHOICES} ANY_VALUE ARRAY_AGG CHAR_LENGTH COUNTIF DATE DATE_ADD DATE_DIFF
        DATE_SUB DATE_TRUNC ENDS_WITH EXTRACT IF IFNULL INITCAP LOGICAL_AND LOGICAL_OR NTH_VALUE SAFE_CAST
        STARTS_WITH STRING_AGG STRPOS SUBSTR TIMESTAMP_TRUNC
    """,
    "databricks": _SPARK,
    "duckdb": f"""
        {_MATHS} {_STATISTICS} {_TEXTS} {_CHOICES} ANY_VALUE ARRAY_AGG CONCAT_WS CONTAINS DATE_DIFF DATE_PART
        DATE_TRUNC EXTRACT IFNULL LIST MEDIAN NTH_VALUE SPLIT_PART STARTS_WITH STRFTIME STRING_AGG STRPOS
        SUBSTR TRY_CAST
    """,
    "mysql": f"""
        {_MATHS} {_STATISTICS} {_TEXTS} {_CHOICES} CHAR_LENGTH CONCAT_WS DATE DATEDIFF DATE_ADD DATE_FORMAT
        DATE_SUB DAY EXTRACT GROUP_CONCAT HOUR IF IFNULL INSTR LOCATE MINUTE MONTH NTH_VALUE POSITION QUARTER
        SECOND SUBSTR SUBSTRING_INDEX WEEK YEAR
    """,
    "postgres": _POSTGRES,
    "redshift": f"{_POSTGRES} DATEADD DATEDIFF LEN LISTAGG MEDIAN NVL",
    "snowflake": f"""
        CEIL EXP FLOOR LN MOD POWER SIGN SQRT {_STATISTICS} {_TEXTS} {_CHOICES} ARRAY_AGG CONCAT_WS CONTAINS
        DATEADD DATEDIFF DATE_PART DATE_TRUNC DAY ENDSWITH EXTRACT HOUR IFF IFNULL INITCAP LEN LISTAGG MEDIAN
        MINUTE MONTH NTH_VALUE NVL QUARTER SECOND SPLIT_PART STARTSWITH SUBSTR TO_CHAR TO_DATE TRY_CAST WEEK YEAR
    """,
    "spark": _SPARK,
    "sqlite": "DATE GROUP_CONCAT IFNULL INSTR NTH_VALUE STRFTIME SUBSTR SUBSTRING",
    "trino": f"""
        {_MATHS} {_STATISTICS} {_CHOICES} ANY_VALUE APPROX_DISTINCT ARRAY_AGG CONCAT CONCAT_WS COUNT_IF DATE
        DATE_ADD DATE_DIFF DATE_TRUNC DAY EXTRACT HOUR IF LISTAGG MINUTE MONTH NTH_VALUE POSITION QUARTER REVERSE
        SECOND SPLIT_PART STARTS_WITH STRPOS SUBSTR SUBSTRING TRY_CAST YEAR
    """,
    "tsql": f"""
        {_TEXTS} {_CHOICES} CEILING CHARINDEX CONCAT_WS CONVERT COUNT_BIG DATEADD DATEDIFF DATENAME DATEPART DAY
        EXP FLOOR IIF ISNULL LEN MONTH POWER SIGN SQRT STDEV STRING_AGG TRY_CAST YEAR
    """,
}
# Words of SQL's grammar, and of its types, before a bracket: no database reads one as a user-defined function
# if the statement is read as sqlglot reads it.
_GRAMMAR_WORDS = """
    ALL AND ANY AS BETWEEN BY CASE CUBE DISTINCT ELSE EXCEPT EXISTS FROM GROUP HAVING IN INTERSECT IS JOIN LATERAL
    LIKE ILIKE LIMIT NOT OFFSET ON OR QUALIFY ROLLUP SELECT SOME THEN TOP UNION USING VALUES WHEN WHERE
    BIT CHAR CHARACTER DATETIME2 DECIMAL FLOAT NCHAR NUMERIC NVARCHAR STRING VARBINARY VARCHAR VARYING
"""
GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
# Words that are grammar only after another word: elsewhere they may name a function.
GRAMMAR_BEHIND = {
    "FILTER": frozenset({")"}),
    "OVER": frozenset({")", "NULLS"}),
    "SETS": frozenset({"GROUPING"}),
    "MATERIALIZED": frozenset({"AS", "NOT"}),
    "TIME": frozenset({"AS", "::"}),
    "TIMESTAMP": frozenset({"AS", "::"}),
}
# Reading a column of this name takes a sequence's next number.
SEQUENCES = frozenset({"NEXTVAL", "CURRVAL"})
# Dialects in which a name after a dot is a field of the value before it. In others it may be a call: in PostgreSQL
# `(t).f` is `f(t)`, in SQL Server a type's own code may be behind it.
FIELDS = frozenset({"bigquery", "databricks", "duckdb", "snowflake", "spark", "trino"})
# The names that an `OUTPUT` of SQL Server uses, in addition to tables.
CHANGED_ROWS = frozenset({"inserted", "deleted"})
# Table names that some databases read as a file's, or as a format's followed by a path.
_FILE_WORDS = """
    AVRO BINARYFILE CSV DELTA GZ ICEBERG IMAGE JDBC JSON JSONL KAFKA LIBSVM NDJSON ORC PARQUET SOCKET TEXT TSV TXT
    XLSX XML ZST
"""
FILES = frozenset(_FILE_WORDS.split())


class Dialect(Struct, frozen=True):
    """One database's list: sqlglot's name of the dialect, and the functions that a select may call."""

    name: str
    functions: frozenset[str]


DIALECTS: Mapping[str, Dialect] = {
    name: Dialect(name, frozenset(f"{_EVERYWHERE} {more}".split())) for name, more in _BUILT_IN.items()
}
OFFERED = tuple(sorted(name for name in DIALECTS if name))
