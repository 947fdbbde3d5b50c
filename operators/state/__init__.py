"""What an operator keeps from slice to slice, how it is stored, and what its methods are called."""
