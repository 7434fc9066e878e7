"""A list of things to do."""


class TaskList:
    """Tasks in the order in which they were added."""

    def __init__(self):
        self.tasks = []
        self.done = set()

    def add(self, title):
        """Add a task."""
        self.tasks.append(title)

    def finish(self, title):
        """Mark a task as done."""
        if title not in self.tasks:
            raise ValueError(f"no such task: {title}")
        self.done.append(title)

    def open(self):
        """Return the tasks that are not done."""
        return [title for title in self.tasks if title not in self.done]
