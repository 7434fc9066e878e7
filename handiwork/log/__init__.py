"""The event log: sessions, their events, leases and blobs, durable and shared between processes."""
