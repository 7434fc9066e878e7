"""Content-addressed snapshots of file trees."""
