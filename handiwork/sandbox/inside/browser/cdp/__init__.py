"""Speaks the Chrome DevTools Protocol."""
