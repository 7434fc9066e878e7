"""The benchmark ``apibank``, and the code base of its 53 APIs, which goes into the workspace."""
