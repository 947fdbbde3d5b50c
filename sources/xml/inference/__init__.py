"""Inference: proposes the declaration of a source from its documents."""
