"""Which actions need the user's approval, and how it is asked for."""
