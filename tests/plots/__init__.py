"""The Displays: what they compute, and that what they draw is what they were given."""
