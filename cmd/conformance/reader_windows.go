package main

// unread reports whether what read the output of the program has gone.
func unread() bool { return true }
