package reference

import (
	"testing"

	"github.com/service-conformance/conformance/framework/reference/rule/ruletest"
)

func TestBook(t *testing.T) { ruletest.Book(t, newBook, wrongs) }
