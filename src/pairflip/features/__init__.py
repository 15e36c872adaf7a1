"""Laws from data."""
