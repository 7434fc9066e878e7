"""The benchmark ``m3tooleval``, and the code base of its tools, which goes into the workspace."""
