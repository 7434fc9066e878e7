"""Actions, observations and records: the vocabulary of every session, and its JSON form."""
