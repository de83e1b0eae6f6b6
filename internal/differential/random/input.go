package random

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// One is true once in n times.
func One(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// Pick chooses one of them.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// Clone is a copy that shares nothing. It panics if the input cannot be encoded.
func Clone[T any](input T) (out T) {
	data, err := json.Marshal(input)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// Parse reads an input that is states which follow each other. valid finds what no side could have. An unknown field is an error.
func Parse[Input, State any](data []byte, states func(*Input) []State, valid func(*State) error) (Input, error) {
	var input Input
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&input); err != nil {
		return input, err
	}
	all := states(&input)
	if len(all) == 0 {
		return input, fmt.Errorf("there has to be at least one state")
	}
	for i := range all {
		if err := valid(&all[i]); err != nil {
			return input, fmt.Errorf("state %d: %w", i, err)
		}
	}
	return input, nil
}

// InTurn compares states, one after another, and ends with the first one that differs: the next ones build on it.
func InTurn[State any, D Difference](states []State, compare func(s *State, number int) ([]D, error)) (differences []D, err error) {
	for i := range states {
		found, err := compare(&states[i], i)
		if err != nil {
			return nil, fmt.Errorf("state %d: %w", i, err)
		}
		differences = append(differences, found...)
		if slices.ContainsFunc(found, func(d D) bool { return d.Tolerance() == "" }) {
			break
		}
	}
	return differences, nil
}
