"""Pictures as SVG: boxes with words, laid out in layers, that fit whatever font a browser has."""
