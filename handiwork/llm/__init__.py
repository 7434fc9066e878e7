"""One interface to all models: messages in, a completion out."""
