"""The OS tasks of AgentBench."""
