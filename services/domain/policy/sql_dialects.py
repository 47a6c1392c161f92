"""What a reading statement may contain, for each dialect that `sql_kind()` is offered for.

An allow-list, by the database's own words: what is not on it may write, call somebody's own function, or start a
program, and is never "select". A name stands in a dialect's list only where that database has it built in and it
changes nothing: elsewhere the same name may be a function that somebody made.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from sqlglot import exp

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
# Words of SQL's grammar, and of its types, before a bracket: no database takes one for a function of somebody's own
# where the statement is read as sqlglot reads it.
_GRAMMAR_WORDS = """
    ALL AND ANY AS BETWEEN BY CASE CUBE DISTINCT ELSE EXCEPT EXISTS FROM GROUP HAVING IN INTERSECT IS JOIN LATERAL
    LIKE ILIKE LIMIT NOT OFFSET ON OR QUALIFY ROLLUP SELECT SOME THEN TOP UNION USING VALUES WHEN WHERE
    BIT CHAR CHARACTER DATETIME2 DECIMAL FLOAT NCHAR NUMERIC NVARCHAR STRING VARBINARY VARCHAR VARYING
"""
GRAMMAR = frozenset(_GRAMMAR_WORDS.split())
# Words that are grammar only behind another one: elsewhere they may name a function.
GRAMMAR_BEHIND = {
    "FILTER": frozenset({")"}),
    "OVER": frozenset({")", "NULLS"}),
    "SETS": frozenset({"GROUPING"}),
    "MATERIALIZED": frozenset({"AS", "NOT"}),
    "TIME": frozenset({"AS", "::"}),
    "TIMESTAMP": frozenset({"AS", "::"}),
}
_GRAMMAR_NODES: tuple[type[Any], ...] = (
    exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.Values, exp.Tuple, exp.With, exp.CTE,
    exp.TableAlias, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered,
    exp.Limit, exp.LimitOptions, exp.Offset, exp.Fetch, exp.Distinct, exp.Star, exp.Column, exp.Identifier,
    exp.Table, exp.Alias, exp.Literal, exp.National, exp.HexString, exp.RawString, exp.Heredoc,
    exp.ByteString, exp.BitString, exp.Null, exp.Boolean, exp.Paren, exp.Placeholder,
    exp.Parameter, exp.Neg, exp.Not, exp.And, exp.Or, exp.Xor, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
    exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Exists, exp.Any, exp.All,
    exp.Interval, exp.Var, exp.Window, exp.WindowSpec, exp.Filter, exp.IgnoreNulls, exp.RespectNulls,
    exp.WithinGroup, exp.AtTimeZone, exp.Bracket, exp.Array, exp.Dot, exp.Lateral, exp.Rollup, exp.Cube,
    exp.GroupingSets, exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey, exp.JSONPathSubscript,
    exp.Schema, exp.Returning,
)  # fmt: skip
_FUNCTION_NODES: tuple[type[Any], ...] = (
    exp.Abs, exp.AnyValue, exp.ApproxDistinct, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.Avg, exp.Ceil, exp.Coalesce,
    exp.Concat, exp.ConcatWs, exp.Contains, exp.Count, exp.CountIf, exp.CumeDist, exp.CurrentDate, exp.CurrentTime,
    exp.CurrentTimestamp, exp.Date, exp.DateAdd, exp.DateDiff, exp.DateStrToDate, exp.DateSub, exp.DateTrunc,
    exp.Datetime, exp.Day, exp.DenseRank, exp.EndsWith, exp.Exp, exp.Extract, exp.FirstValue, exp.Floor,
    exp.Greatest, exp.GroupConcat, exp.Hour, exp.Initcap, exp.JSONBExtract, exp.JSONBExtractScalar,
    exp.JSONExtract, exp.JSONExtractScalar, exp.Lag, exp.LastValue, exp.Lead, exp.Least, exp.Left, exp.Length,
    exp.Ln, exp.LogicalAnd, exp.LogicalOr, exp.Lower, exp.Max, exp.Median, exp.Min, exp.Minute, exp.Month,
    exp.NthValue, exp.Ntile, exp.Nullif, exp.PercentRank, exp.PercentileCont, exp.PercentileDisc, exp.Pow,
    exp.Quarter, exp.Rank, exp.Replace, exp.Reverse, exp.Right, exp.Round, exp.RowNumber, exp.Second, exp.Sign,
    exp.SplitPart, exp.Sqrt, exp.StartsWith, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.StrPosition,
    exp.StrToDate,
    exp.TimeStrToTime, exp.Convert, exp.Substring, exp.SubstringIndex,
    exp.Sum, exp.TimeToStr, exp.Timestamp, exp.TimestampTrunc,
    exp.ToChar, exp.Trim, exp.TsOrDsAdd, exp.TsOrDsDiff, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.Upper,
    exp.Variance, exp.VariancePop, exp.Week, exp.Year,
)  # fmt: skip
NODES = frozenset(_GRAMMAR_NODES + _FUNCTION_NODES)
_SELECT_CLAUSES = "with_ expressions distinct from_ joins where group having qualify order limit offset"
# Of nodes with clauses that may do more than read: those that do not.
CLAUSES: Mapping[type[Any], frozenset[str]] = {
    exp.Select: frozenset(_SELECT_CLAUSES.split()),
    exp.Table: frozenset(["this", "db", "catalog", "alias", "joins"]),
    exp.Join: frozenset(["this", "side", "kind", "on", "using"]),
    exp.Subquery: frozenset(["this", "with_", "alias", "joins", "order", "limit", "offset"]),
    exp.Lateral: frozenset(["this", "alias"]),
    exp.Cast: frozenset(["this", "to"]),
    exp.TryCast: frozenset(["this", "to", "safe", "requires_string"]),
}
# A column of this name is a sequence's next number, taken.
SEQUENCES = frozenset({"NEXTVAL", "CURRVAL"})
# A table's name that some databases read as a file's, or as a format's with a path behind it.
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
