"""The loop over slices: what sources read, how far, at which moment; each slice is computed and ends in one commit."""
