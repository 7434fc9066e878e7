"""Lists of sessions, and the search in their contents."""
