package spec

import (
	"regexp"
	"strings"
)

// Glob turns a pattern into a predicate on names, such as IDs and names of checks. In a pattern "*" stands for any text and "?" for
// any one character. All other characters stand for themselves. The pattern must match the whole name. Unlike path.Match, "*"
// also stands for slashes, which names of checks contain (CIDRs).
func Glob(pattern string) (matches func(name string) bool) {
	quoted := regexp.QuoteMeta(strings.ToValidUTF8(pattern, "\uFFFD")) // an expression with other bytes does not compile
	quoted = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted)
	return regexp.MustCompile("(?s)^" + quoted + "$").MatchString
}
