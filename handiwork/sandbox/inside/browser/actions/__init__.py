"""An agent's actions on a page."""
