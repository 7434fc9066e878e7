"""Tools for images, texts, sounds and facts."""
