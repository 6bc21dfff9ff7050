"""Published experiments that run again from end to end."""
