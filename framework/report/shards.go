package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// ShardReport is the report of one shard, and where it was read from.
type ShardReport struct {
	Path string
	*Report
}

// MergeShards makes of the reports of all shards of a run, in any order, the report that the run has if it is not
// divided. It refuses shards that are not of one run or not whole, and a set in which one is missing or doubled. The
// error is one line that names them. The run begins with its first shard and ends with its last one.
func MergeShards(shards []ShardReport) (*Report, error) {
	shards = slices.Clone(shards)
	for i, s := range shards {
		if err := s.fits(); err != nil {
			return nil, err
		}
		if err := s.fitsTo(shards[0]); i > 0 && err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(shards, func(a, b ShardReport) int { return cmp.Compare(a.Selection.Shard.Index, b.Selection.Shard.Index) })
	if err := complete(shards); err != nil {
		return nil, err
	}
	first := shards[0].Report
	selection := *first.Selection
	selection.Shard, selection.Arguments = nil, withoutShard(selection.Arguments)
	run := Run{
		SuiteVersion: first.SuiteVersion, Candidate: first.Candidate, Started: first.Started, Seed: first.Seed, Selection: &selection, Submitter: first.Submitter,
		Expectations: Expectations{first.Expectations},
	}
	var end time.Time
	parts := make([]Part, len(shards))
	for i, s := range shards {
		if s.Started.Before(run.Started) {
			run.Started = s.Started
		}
		if e := s.Started.Add(time.Duration(s.Seconds * float64(time.Second))); e.After(end) {
			end = e
		}
		part := *s.Report
		part.Ended = slices.Clone(part.Ended)
		for k := range part.Ended {
			part.Ended[k].Log = s.logPath(part.Ended[k].Log)
		}
		parts[i].Report = &part
	}
	run.Duration = end.Sub(run.Started)
	return Merge(run, parts), nil
}

// LogsFolder holds, in the folder of a report, the logs of programs that were judged.
const LogsFolder = "logs"

// LogsOf is where the logs of a shard are in the folder of the merged report, a slash-separated path.
func LogsOf(s candidate.Shard) string { return path.Join(LogsFolder, fmt.Sprintf("shard-%d", s.Index)) }

// logPath is the path of a log of the shard in the folder of the merged report.
func (s ShardReport) logPath(log string) string {
	inside, of := strings.CutPrefix(log, LogsFolder+"/")
	if !of {
		return log
	}
	return path.Join(LogsOf(s.Selection.Shard.Shard), inside)
}

// fits finds what keeps a report from being merged at all.
func (s ShardReport) fits() error {
	switch {
	case !s.Selection.ofShard():
		return fmt.Errorf("%s is the report of a whole run: only those of shards are merged (run --shard)", s.Path)
	case s.Selection.Shard.Index < 1 || s.Selection.Shard.Index > s.Selection.Shard.Of:
		return fmt.Errorf("%s is of shard %s, which there is not", s.Path, s.Selection.Shard)
	case s.Catalogue != spec.Digest():
		return fmt.Errorf("%s was judged by another catalogue of requirements than that of this program: merge with the program of suite %s", s.Path, visible(s.SuiteVersion))
	case s.Interrupted || s.NotRun > 0:
		return fmt.Errorf("%s is partial, %d checks were not judged: run shard %s again", s.Path, s.CutOff(), s.Selection.Shard)
	case s.Candidate.Implementation == "":
		return fmt.Errorf("%s judged nothing, for there was no cluster: run shard %s again", s.Path, s.Selection.Shard)
	}
	return nil
}

// fitsTo finds in what two shards differ that cannot be of one run.
func (s ShardReport) fitsTo(o ShardReport) error {
	a, b := o.Selection.Shard, s.Selection.Shard
	if a.Of != b.Of || a.Checks != b.Checks {
		return fmt.Errorf("%s and %s are not of one run: shard %s of %d checks, and shard %s of %d checks", o.Path, s.Path, a, a.Checks, b, b.Checks)
	}
	if what, x, y := differing(o.common(), s.common()); what != "" {
		return fmt.Errorf("%s and %s are not of one run: %s is %s there, and %s here", o.Path, s.Path, what, x, y)
	}
	return nil
}

// common is what all shards of a run have in common, by name, as JSON. What differs from place to place, and decides nothing, is left out.
func (s ShardReport) common() map[string]json.RawMessage {
	c := s.Candidate
	c.Nobody, c.Surroundings = nil, nil
	if c.Admission != nil { // what is said of a refusal may name an object
		said := *c.Admission
		said.Refused = maps.Clone(said.Refused)
		for feature := range said.Refused {
			said.Refused[feature] = ""
		}
		c.Admission = &said
	}
	selection := *s.Selection
	selection.Shard, selection.Arguments = nil, nil
	all := map[string]json.RawMessage{}
	add := func(prefix string, of any) {
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(asJSON(of), &fields)
		for name, value := range fields {
			all[prefix+name] = value
		}
	}
	add("candidate.", c)
	add("selection.", selection)
	add("", map[string]any{"suiteVersion": s.SuiteVersion, "seed": s.Seed, "submitter": s.Submitter, "expectations": s.Expectations})
	return all
}

// differing names the first thing, by name, on which two sets of values differ, and both values; empty if none.
func differing(a, b map[string]json.RawMessage) (name, x, y string) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range names {
		if x, y := a[name], b[name]; !bytes.Equal(x, y) {
			return name, shown(x, y), shown(y, x)
		}
	}
	return "", "", ""
}

// shown is a value as a message shows it beside another one. It is whole if it is short; otherwise it begins where the
// two begin to differ.
func shown(value, other json.RawMessage) string {
	const short, before = 60, 20
	text, lead, trail := string(value), "", ""
	if text == "" || text == "null" {
		return "nothing"
	}
	if len(text) > short {
		at := 0
		for at < min(len(value), len(other)) && value[at] == other[at] {
			at++
		}
		if at > before {
			lead, text = "…", text[at-before:]
		}
		if len(text) > short {
			trail, text = "…", text[:short]
		}
	}
	return visible(lead + strings.ToValidUTF8(text, "") + trail)
}

// complete finds, in shards that are in order, one that is there twice or missing, and a check that two of them have.
func complete(shards []ShardReport) error {
	for i, s := range shards {
		if i > 0 && shards[i-1].Selection.Shard.Index == s.Selection.Shard.Index {
			return fmt.Errorf("%s and %s are both of shard %s", shards[i-1].Path, s.Path, s.Selection.Shard)
		}
	}
	if of := shards[0].Selection.Shard.Of; len(shards) < of {
		missing := candidate.Shard{Index: len(shards) + 1, Of: of}
		for i, s := range shards {
			if s.Selection.Shard.Index != i+1 {
				missing.Index = i + 1
				break
			}
		}
		return fmt.Errorf("shard %s is missing: %d of %d are there", missing, len(shards), of)
	}
	by := map[string]string{}
	for _, s := range shards {
		for _, c := range s.Checks {
			if before, twice := by[c.Check]; twice && before != s.Path {
				return fmt.Errorf("%s and %s are not of one run: both have check %q, so different programs have divided the checks", before, s.Path, visible(c.Check))
			}
			by[c.Check] = s.Path
		}
	}
	return nil
}

// withoutShard are arguments of a shard without those that say which one it is and where its report goes.
func withoutShard(arguments []string) (rest []string) {
	for i := 0; i < len(arguments); i++ {
		name, _, joined := strings.Cut(arguments[i], "=")
		switch name {
		case "--shard", "--report-dir":
			if !joined {
				i++
			}
		default:
			rest = append(rest, arguments[i])
		}
	}
	return rest
}
