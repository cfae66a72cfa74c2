"""Tables and records, in and out. No mathematics here, and every name in a file is only data."""
