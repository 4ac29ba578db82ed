"""A small part of the campaigns."""
