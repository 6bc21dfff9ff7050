"""Published experiments, repeated from the plan to the validation."""
