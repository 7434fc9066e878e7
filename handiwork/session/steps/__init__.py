"""One step of the loop: the agent, the model, the action and its observation."""
