"""Libraries of others around the classifiers, used as their own documentation says."""
