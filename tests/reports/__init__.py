"""What users of other clients ran into, and the defects of today's: none of it happens here."""
