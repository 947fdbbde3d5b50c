"""Punctuated XML: from the bytes of documents to typed tuples and punctuations."""
