"""The dialog with the user at a terminal: questions, answers, signals."""
