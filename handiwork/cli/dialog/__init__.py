"""How a session asks and answers at a terminal."""
