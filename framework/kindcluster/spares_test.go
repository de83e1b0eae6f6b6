package kindcluster

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestASpareNodeHasASecondAddressInALargeNetwork(t *testing.T) {
	const printed = `7: eth0    inet 172.18.0.5/16 brd 172.18.255.255 scope global eth0\       valid_lft forever preferred_lft forever
7: eth0    inet6 fc00:f853:ccd:e793::5/64 scope global nodad \       valid_lft forever preferred_lft forever
7: eth0    inet 172.18.254.5/32 scope global eth0\       valid_lft forever preferred_lft forever
7: eth0    inet 192.168.7.5/24 brd 192.168.7.255 scope global eth0\       valid_lft forever preferred_lft forever
`
	if got, want := fmt.Sprint(furtherAddresses(printed)), "[172.18.254.5 fc00:f853:ccd:e793::fe05]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPodsOfASpareNodeHaveARouteByItInEachFamilyThatItHas(t *testing.T) {
	pods := []netip.Prefix{netip.MustParsePrefix("10.244.5.0/24"), netip.MustParsePrefix("fd00:10:244:5::/64")}
	const four = "ip -4 route replace 10.244.5.0/24 via 172.18.0.7 metric 40000\n"
	if got := routesVia(pods, "172.18.0.7", ""); got != four {
		t.Errorf("one family: got %q, want %q", got, four)
	}
	both := four + "ip -6 route replace fd00:10:244:5::/64 via fc00::7 metric 40000\n"
	if got := routesVia(pods, "172.18.0.7", "fc00::7"); got != both {
		t.Errorf("two families: got %q, want %q", got, both)
	}
}
