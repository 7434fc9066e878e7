"""``handiwork`` alone: a conversation with the agent about the current directory."""
