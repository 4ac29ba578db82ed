"""Tests of tables: files, kinds, the preparer, remarks."""
