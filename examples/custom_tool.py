"""A tool of one's own: run it with `--agent examples/custom_tool.py:CountingAgent`."""

from handiwork.agents.codeact import CodeActAgent


def count_words(path: str, at_least: int = 1) -> dict[str, int]:
    """Count the words of a text file and return those that occur `at_least` times, the most frequent first."""
    from collections import Counter
    from pathlib import Path

    counted = Counter(Path(path).read_text().lower().split())
    return {word: times for word, times in counted.most_common() if times >= at_least}


class CountingAgent(CodeActAgent):
    """CodeAct with one tool more: the model calls it by name, and it runs in the sandbox's notebook."""

    description = "CodeAct that can count words."
    tools = (count_words,)
