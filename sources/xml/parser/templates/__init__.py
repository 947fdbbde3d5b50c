"""The fast path of the parser: items of one shape read columnwise, with a proof that nothing was misread."""
