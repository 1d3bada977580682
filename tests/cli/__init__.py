"""Proves the command line, run as users run it: what it prints and where, its exit statuses, that it keeps secrets
and terminals safe, and that it is quick."""
