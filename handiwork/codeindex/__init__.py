"""The code index: blocks of a codebase, found by Lucene-style queries; only changed files are read again."""
