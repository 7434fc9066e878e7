"""Sessions over HTTP and WebSocket: to create, follow and steer them from a browser or a program."""
