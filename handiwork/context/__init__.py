"""Conventions of the project, the user and packages: found and read on the host, trusted by the user, run nowhere."""
