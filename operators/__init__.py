"""The operators of punctuated streams, one module each: step, pass, propagate, keep on Spark."""
