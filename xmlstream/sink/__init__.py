"""Results as punctuated XML."""
