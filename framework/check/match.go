package check

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// matcher is a demand on one value: meets decides, wanted says what is demanded.
type matcher struct {
	wanted string
	meets  func(actual any) (bool, string, error) // with the observation for the failure message
	seen   string
}

func (m *matcher) Match(actual any) (ok bool, err error) {
	ok, m.seen, err = m.meets(actual)
	return ok, err
}

func (m *matcher) FailureMessage(any) string { return "expected " + m.wanted + "\nobserved " + m.seen }

func (m *matcher) NegatedFailureMessage(any) string {
	return "expected not " + m.wanted + "\nobserved " + m.seen
}

func onResponse(wanted string, meets func(Response) bool) types.GomegaMatcher {
	return &matcher{wanted: wanted, meets: func(actual any) (bool, string, error) {
		a, ok := actual.(Response)
		if !ok {
			return false, "", fmt.Errorf("the demand is on a check.Response, not on a %T", actual)
		}
		return meets(a), a.String(), nil
	}}
}

// BeAccepted demands that the request succeeded.
func BeAccepted() types.GomegaMatcher {
	return onResponse("the request to be accepted", Response.Accepted)
}

// BeRefused demands that the server refused the request as the client's fault: a code from 400 to 499 with a Status.
func BeRefused() types.GomegaMatcher {
	return onResponse("the request to be refused (4xx)", func(a Response) bool {
		return a.Code >= 400 && a.Code < 500 && a.Status != nil
	})
}

// BeRefusedWith demands a refusal with exactly this code and reason.
func BeRefusedWith(code int, reason metav1.StatusReason) types.GomegaMatcher {
	return onResponse(fmt.Sprintf("the request to be refused with %d %s", code, reason), func(a Response) bool {
		return a.Code == code && a.Status != nil && a.Status.Reason == reason
	})
}

// BeInvalid demands a refusal with 422 Invalid that names one of the fields as a cause. "spec.ports" does not stand for
// "spec.ports[0]"; no field at all accepts any cause.
func BeInvalid(fields ...string) types.GomegaMatcher {
	wanted := "the request to be refused with 422 Invalid"
	if len(fields) > 0 {
		wanted += " at " + strings.Join(fields, " or ")
	}
	return onResponse(wanted, func(a Response) bool {
		return a.Code == http.StatusUnprocessableEntity && a.Status != nil && a.Status.Reason == metav1.StatusReasonInvalid &&
			(len(fields) == 0 || slices.ContainsFunc(a.Fields(), func(f string) bool { return slices.Contains(fields, f) }))
	})
}

// BeExhausted demands the response of a server whose range is full: a refusal (4xx or 500 InternalError) that is a Status.
func BeExhausted() types.GomegaMatcher {
	return onResponse("the request to be refused because the range is full", func(a Response) bool {
		return a.Code >= 400 && a.Code <= 500 && a.Status != nil && a.Status.Status == metav1.StatusFailure
	})
}

// Fields are the fields that a refusal names as causes.
func (a Response) Fields() []string {
	var fields []string
	if a.Status != nil && a.Status.Details != nil {
		for _, c := range a.Status.Details.Causes {
			fields = append(fields, c.Field)
		}
	}
	return fields
}

// Warn demands a Warning header that contains the text.
func Warn(text string) types.GomegaMatcher {
	return onResponse(fmt.Sprintf("a warning with %q", text), func(a Response) bool {
		return slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, text) })
	})
}

// Band is one of the two parts of a Service range.
type Band string

// The bands.
const (
	Lower Band = "lower (static)"
	Upper Band = "upper (dynamic)"
)

// BeInBand demands that an address (netip.Addr or string) lies in a band of the range.
func BeInBand(band Band, cidr netip.Prefix) types.GomegaMatcher {
	b := BandsOf(cidr)
	from, to, in := b.First, b.StaticLast, b.InStatic
	if band == Upper {
		from, to, in = b.DynamicFirst, b.Last, b.InDynamic
	}
	wanted := fmt.Sprintf("an address in the %s band of %s, %s to %s", band, cidr, from, to)
	return &matcher{wanted: wanted, meets: func(actual any) (bool, string, error) {
		addr, err := address(actual)
		return err == nil && in(addr), fmt.Sprint(actual), nil
	}}
}

// BeInRange demands that an address (netip.Addr or string) is a usable one of the range: neither the network address nor
// an IPv4 broadcast address.
func BeInRange(cidr netip.Prefix) types.GomegaMatcher {
	b := BandsOf(cidr)
	wanted := fmt.Sprintf("a usable address of %s, %s to %s", cidr, b.First, b.Last)
	return &matcher{wanted: wanted, meets: func(actual any) (bool, string, error) {
		addr, err := address(actual)
		return err == nil && b.First.IsValid() && addr.Compare(b.First) >= 0 && addr.Compare(b.Last) <= 0, fmt.Sprint(actual), nil
	}}
}

func address(v any) (netip.Addr, error) {
	if a, ok := v.(netip.Addr); ok {
		return a, nil
	}
	return netip.ParseAddr(fmt.Sprint(v))
}
