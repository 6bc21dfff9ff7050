"""Reads robot descriptions of every supported format into a frozen `RobotDescription`."""
