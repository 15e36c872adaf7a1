"""Searching supports of one size: schedules, chains, and what they found."""
