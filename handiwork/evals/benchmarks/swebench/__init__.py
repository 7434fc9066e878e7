"""SWE-bench: real issues of Python repositories, repaired in environments built from their specifications."""
