"""Speed targets, each measured as a ratio against something in the same run."""
