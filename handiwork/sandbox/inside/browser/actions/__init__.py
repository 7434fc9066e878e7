"""What an agent does on a page."""
