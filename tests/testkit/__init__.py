"""The test kit for projects."""
