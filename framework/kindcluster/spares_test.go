package kindcluster

import (
	"fmt"
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
