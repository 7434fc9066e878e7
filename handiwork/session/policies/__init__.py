"""What a session decides by itself: budget, repetition, condensation."""
