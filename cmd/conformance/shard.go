package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// completionIndex is the variable in which the pods of an indexed Job have their number, which counts from 0.
const completionIndex = "JOB_COMPLETION_INDEX"

// parseShard reads the value of --shard. index is the value of the variable completionIndex.
func parseShard(text, index string) (s candidate.Shard, err error) {
	first, of, _ := strings.Cut(text, "/")
	if s.Of, err = strconv.Atoi(of); err != nil || s.Of < 1 {
		return s, fmt.Errorf("write which one it is and how many there are, such as 1/3, or index/3 in the pods of an indexed Job")
	}
	if first != "index" {
		if s.Index, err = strconv.Atoi(first); err != nil || s.Index < 1 || s.Index > s.Of {
			return s, fmt.Errorf("there are shards 1/%d to %d/%d", s.Of, s.Of, s.Of)
		}
		return s, nil
	}
	if index == "" {
		return s, fmt.Errorf("%s is not set, as it is in the pods of an indexed Job: write a number elsewhere, such as 1/%d", completionIndex, s.Of)
	}
	if s.Index, err = strconv.Atoi(index); err != nil || s.Index < 0 || s.Index >= s.Of {
		return s, fmt.Errorf("%s is %q, and not 0 to %d: the Job must have %d completions", completionIndex, index, s.Of-1, s.Of)
	}
	s.Index++
	return s, nil
}

// ofShard says which shard the run judges; empty for a whole run.
func (f *runFlags) ofShard() string {
	if f.Shard.Of == 0 {
		return ""
	}
	return ", shard " + f.Shard.String()
}
