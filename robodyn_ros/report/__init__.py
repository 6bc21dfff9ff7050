"""Pictures of what was identified."""
