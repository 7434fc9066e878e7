"""Micro agents: agents and pieces of knowledge that are Markdown files with front matter, without programming."""
