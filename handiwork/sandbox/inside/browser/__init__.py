"""The browser inside the sandbox: a process of its own that drives Chromium and tells what its pages show."""
