"""The fast path of the parser: items that match a template are read columnwise, and proven to be read alike."""
