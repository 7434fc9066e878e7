"""A list of tasks as text."""


def render(tasks):
    """Return one line for each task, with a mark before those that are done."""
    return "\n".join(f"[{'x' if title in tasks.done else ' '}] {title}" for title in tasks.tasks)
