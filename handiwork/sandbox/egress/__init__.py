"""What leaves a sandbox: one proxy for each, outside of it, which lets through what the user allows."""
