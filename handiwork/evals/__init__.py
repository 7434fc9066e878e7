"""Evaluation: agents on benchmarks, by the benchmarks' official rules, with runs that can be believed."""
