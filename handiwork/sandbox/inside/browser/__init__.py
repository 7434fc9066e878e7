"""The browser inside the sandbox: a separate process that drives Chromium and observes its pages."""
