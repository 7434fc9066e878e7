"""Models of providers for which pydantic-ai has clients."""
