package check

import "math"

// FalseAlarm bounds the probability that a statistical demand fails on an implementation that is right.
const FalseAlarm = 1e-9

// TrialsUntil returns the smallest number of independent trials after which an event of probability p (0 < p <= 1) has
// happened at least once. The probability of error is below FalseAlarm.
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

// TrialsWithin returns a number of independent trials. After them, the share of an event of probability p differs from
// p by at most t (0 < t < p, p+t < 1), on either side. sides is how many one-sided demands are made. The probability
// that one of them fails is below FalseAlarm (Chernoff's bound).
func TrialsWithin(p, t float64, sides int) int {
	rate := min(divergence(p+t, p), divergence(p-t, p))
	return int(math.Ceil(math.Log(float64(sides)/FalseAlarm) / rate))
}

// divergence is how unlikely a share q is where the probability is p. n trials have q, or a share further from p, with
// a probability of at most exp(-n·divergence).
func divergence(q, p float64) float64 {
	return q*math.Log(q/p) + (1-q)*math.Log((1-q)/(1-p))
}
