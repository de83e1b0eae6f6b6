package report

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// contradicted reports an observation that the verdict of the check cannot rest on.
func (c *CheckVerdict) contradicted() error {
	for _, e := range c.Evidence {
		if e.Addresses != nil {
			if err := c.judgeAddresses(e.Addresses); err != nil {
				return err
			}
		}
		if e.Timeline != nil {
			if err := e.Timeline.Sound(); err != nil {
				return err
			}
		}
	}
	if c.Failure == nil || len(c.Failure.Cases) == 0 {
		return nil
	}
	if !slices.ContainsFunc(c.Failure.Cases, func(s check.CaseSeen) bool { return !s.Met }) {
		return fmt.Errorf("it fails, although all cases that it names are met")
	}
	return nil
}

// judgeAddresses judges again what addresses alone decide. A check that calls the allocation of a range right has seen
// no address twice, and none that is unusable. If it is about the order of the bands, it has seen none of the lower
// band while the upper one had free ones.
func (c *CheckVerdict) judgeAddresses(a *check.Addresses) error {
	cidr, err := netip.ParsePrefix(a.ServiceCIDR)
	if err != nil {
		return fmt.Errorf("its addresses are of the range %q, which is none", visible(a.ServiceCIDR))
	}
	if bits := cidr.Addr().BitLen() - cidr.Bits(); bits > 31 {
		return fmt.Errorf("its addresses are of %s, which is too long for offsets", cidr)
	}
	if c.Verdict != check.Conformant {
		return nil
	}
	bands, seen, lower := check.BandsOf(cidr), map[int]bool{}, 0
	for _, offset := range a.Offsets {
		addr := check.AddressPlus(bands.Network, big.NewInt(int64(offset)))
		switch {
		case offset < 0 || !(bands.InStatic(addr) || bands.InDynamic(addr)):
			return fmt.Errorf("it is conformant, but %s was handed out, which is not usable", addr)
		case seen[offset]:
			return fmt.Errorf("it is conformant, but %s was handed out twice", addr)
		case bands.InStatic(addr):
			lower++
		case lower > 0 && slices.Contains(c.Requirements, spec.AllocUpperBandFirst):
			return fmt.Errorf("it is conformant, but %s of the upper band was handed out after an address of the lower one", addr)
		}
		seen[offset] = true
	}
	return nil
}

// visible is text of others without what moves the cursor of a terminal or hides in it.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return '�'
		}
		return r
	}, text)
}
