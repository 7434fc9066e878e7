"""The models that providers offer, and the keys of providers that the user keeps."""
