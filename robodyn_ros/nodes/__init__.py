"""The ROS 2 nodes, which convert messages for the core; the only package that imports ROS."""
