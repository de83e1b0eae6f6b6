package reference

import (
	"testing"

	"github.com/service-conformance/conformance/framework/reference/rule/ruletest"
)

func TestRulesOfAllBooksHaveNamesOfTheirOwn(t *testing.T) { ruletest.Entries(t, Rules()) }
