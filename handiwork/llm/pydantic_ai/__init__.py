"""Models of providers that pydantic-ai has clients for."""
