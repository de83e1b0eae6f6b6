package allocator

import (
	"testing"

	"github.com/service-conformance/conformance/framework/reference/rule/ruletest"
)

func TestAddressBook(t *testing.T) { ruletest.Book(t, newAddressBook, addressWrongs) }

func TestPortBook(t *testing.T) { ruletest.Book(t, newPortBook, portWrongs) }
