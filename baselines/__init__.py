"""The methods that Lumberjack is compared with: one file, one method."""
