"""Opening, copying and replacing files that an agent may swap at any time."""
