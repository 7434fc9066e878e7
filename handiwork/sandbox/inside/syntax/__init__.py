"""Syntax checks of source files; the action server and the skills use them."""
