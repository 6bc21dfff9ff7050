"""Live experiments without ROS: motions, recordings, runs, and their results."""
