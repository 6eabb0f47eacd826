"""Builds with cargo: its command line, and what decides a binary."""
