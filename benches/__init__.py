"""Programs that measure, too long for the tests."""
