"""Allowed and refused SQL: the allow-list, errors with what to write instead, and misspelt words."""
