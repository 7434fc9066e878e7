"""A client of the Chrome DevTools Protocol."""
