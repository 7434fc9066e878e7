"""The code index: blocks of a codebase, found by Lucene-style queries, read again only where files change."""
