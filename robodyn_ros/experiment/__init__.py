"""What a live experiment needs without ROS: recording, runs, and the way to their results."""
