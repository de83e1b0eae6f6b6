package check

import "math"

// FalseAlarm bounds the probability that a statistical demand fails on an implementation that is right.
const FalseAlarm = 1e-9

// TrialsUntil returns the smallest number of independent trials after which an event of probability p (0 < p <= 1) in
// each of them has happened at least once, except with a probability below FalseAlarm.
func TrialsUntil(p float64) int {
	if p >= 1 {
		return 1
	}
	return int(math.Ceil(math.Log(FalseAlarm) / math.Log1p(-p)))
}

// OrderedBy returns the smallest number of random, distinct values that come in one given order (for example ascending)
// with a probability below FalseAlarm.
func OrderedBy() int {
	n, p := 1, 1.0
	for p >= FalseAlarm {
		n++
		p /= float64(n)
	}
	return n
}
