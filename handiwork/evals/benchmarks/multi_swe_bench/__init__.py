"""Multi-SWE-bench: real issues of repositories in seven languages, repaired in their official Docker images."""
