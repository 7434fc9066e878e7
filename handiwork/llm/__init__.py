"""Messages in, a completion out, whichever model it is."""
