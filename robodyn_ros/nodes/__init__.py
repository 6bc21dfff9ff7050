"""The ROS 2 nodes: message -> array -> core -> message. The only folder that knows ROS."""
