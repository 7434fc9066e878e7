"""The output on the terminal."""
