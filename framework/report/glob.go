package report

import (
	"regexp"
	"strings"
)

// globMatch reports whether the whole name matches a pattern in which "*" stands for any text and "?" for any one
// character. Check names contain slashes (CIDRs), which path.Match would not cross.
func globMatch(pattern, name string) bool {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted)
	matched, err := regexp.MatchString("^"+quoted+"$", name)
	return err == nil && matched
}
