package main

// output is where the program prints.
var output []int

// unread reports whether what read the output of the program has gone.
func unread(...int) bool { return true }
