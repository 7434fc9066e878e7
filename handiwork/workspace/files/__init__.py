"""Opens, copies and replaces files that an agent may have swapped."""
