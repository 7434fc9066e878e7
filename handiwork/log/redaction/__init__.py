"""Takes secrets out of what the log keeps."""
