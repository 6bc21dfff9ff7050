"""Robot descriptions: text of any source in, a frozen `RobotDescription` out."""
