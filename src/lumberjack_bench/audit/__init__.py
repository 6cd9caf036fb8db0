"""Statistical lower bounds on epsilon: what a method leaks at least, whatever it claims."""
