"""Byte streams between the user and the sandbox, which the agent does not see: terminals and connections."""
