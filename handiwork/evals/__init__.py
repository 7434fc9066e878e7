"""Evaluation: agents on benchmarks, by the benchmarks' official rules, in reproducible runs."""
