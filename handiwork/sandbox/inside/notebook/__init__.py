"""The notebook and its IPython kernel."""
