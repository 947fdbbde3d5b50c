"""Inference: what a document looks like, proposed as the declaration of a source."""
