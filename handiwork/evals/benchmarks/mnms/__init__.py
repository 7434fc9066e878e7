"""The benchmark ``mnms``, and the code base of its tools, which goes into the workspace."""
