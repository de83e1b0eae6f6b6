package reference

import (
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/dns"
	"github.com/service-conformance/conformance/framework/reference/endpoints"
	"github.com/service-conformance/conformance/framework/reference/kubelet"
	"github.com/service-conformance/conformance/framework/reference/proxy"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/reference/service"
)

// Rules returns the rules of all books of the reference with the requirements that they follow, sorted by name.
func Rules() []rule.Entry {
	all := slices.Concat(rule.Entries(newBook()), allocator.Book(), apiserver.Book(), dns.Book(), endpoints.Book(), kubelet.Book(), proxy.Book(), service.Book())
	slices.SortStableFunc(all, func(a, b rule.Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}
