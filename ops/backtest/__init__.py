"""`placet policy backtest`: recorded verdicts, judged again by a candidate policy, beside what people decided."""
