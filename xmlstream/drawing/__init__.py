"""Pictures as SVG: boxes with text, laid out in layers, which fit any font of a browser."""
