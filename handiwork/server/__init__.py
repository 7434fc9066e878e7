"""Sessions over HTTP and WebSocket: to make, follow and steer them from a browser or a program."""
