"""The command line: thin commands over sessions."""
