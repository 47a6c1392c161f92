"""The nodes of sqlglot's trees, and their clauses, that a reading statement can contain in every dialect."""

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

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
# Of nodes whose clauses may do more than read: the clauses that do not.
CLAUSES: Mapping[type[Any], frozenset[str]] = {
    exp.Select: frozenset(_SELECT_CLAUSES.split()),
    exp.Table: frozenset(["this", "db", "catalog", "alias", "joins"]),
    exp.Join: frozenset(["this", "side", "kind", "on", "using"]),
    exp.Subquery: frozenset(["this", "with_", "alias", "joins", "order", "limit", "offset"]),
    exp.Lateral: frozenset(["this", "alias"]),
    exp.Cast: frozenset(["this", "to"]),
    exp.TryCast: frozenset(["this", "to", "safe", "requires_string"]),
}
