"""AgentBench, its OS tasks."""
