//go:build linux

// Command register tells a Cilium agent about a pod of its node, as the CNI plugin of Cilium does. It waits until the
// pod is served.
//
//	register add|remove SOCKET INTERFACE
//
// INTERFACE is the node's end of the cable to the pod.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

func main() {
	if len(os.Args) != 4 || os.Args[1] != "add" && os.Args[1] != "remove" {
		log.Fatal("usage: register add|remove SOCKET INTERFACE")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, action, socket, name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	e, err := describe(link)
	if err != nil {
		return err
	}
	path := "/endpoint/cni-attachment-id:" + e.Container + ":" + e.ContainerDevice
	if action == "remove" {
		return newAgent(socket).call(ctx, http.MethodDelete, path, nil)
	}
	return newAgent(socket).call(ctx, http.MethodPut, path, e)
}

// patience is how long an agent may take: for its first pod it compiles programs.
const patience = 5 * time.Minute

// agent is the API of a Cilium agent.
type agent struct{ http *http.Client }

func newAgent(socket string) *agent {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &agent{&http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial}}}
}

func (a *agent) call(ctx context.Context, method, path string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://agent/v1"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if said, err := io.ReadAll(response.Body); response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s (%w)", method, path, response.Status, said, err)
	}
	return nil
}

// endpoint is what Cilium's API calls an EndpointChangeRequest, as far as it is needed.
type endpoint struct {
	Addressing struct {
		IPv4 string `json:"ipv4"`
		IPv6 string `json:"ipv6"`
	} `json:"addressing"`
	Container       string   `json:"container-id"`
	ContainerDevice string   `json:"container-interface-name"`
	State           string   `json:"state"`
	HostMAC         string   `json:"host-mac"`
	MAC             string   `json:"mac"`
	Index           int      `json:"interface-index"`
	Name            string   `json:"interface-name"`
	Labels          []string `json:"labels"`
	Wait            bool     `json:"sync-build-endpoint"`
	Datapath        struct {
		RequireARPPassthrough bool `json:"require-arp-passthrough"`
		RequireEgressProg     bool `json:"require-egress-prog"`
		ExternalIPAM          bool `json:"external-ipam"`
		RequireRouting        bool `json:"require-routing"`
	} `json:"datapath-configuration"`
}

// describe says what Cilium has to know of the pod behind an interface: its addresses are the hosts that routes of the interface lead to.
func describe(l netlink.Link) (e endpoint, err error) {
	at := l.Attrs()
	e.Container, e.ContainerDevice, e.State = fmt.Sprintf("%s-%d", at.Name, at.Index), "eth0", "waiting-for-identity"
	e.HostMAC, e.Index, e.Name, e.Labels, e.Wait = at.HardwareAddr.String(), at.Index, at.Name, []string{"container:lab=pod"}, true
	e.Datapath.RequireARPPassthrough, e.Datapath.RequireEgressProg, e.Datapath.ExternalIPAM = true, true, true
	routes, err := netlink.RouteList(l, netlink.FAMILY_ALL)
	if err != nil {
		return e, fmt.Errorf("routes of %s: %w", at.Name, err)
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		ones, bits := r.Dst.Mask.Size()
		switch {
		case ones != bits:
		case bits == net.IPv4len*8:
			e.Addressing.IPv4 = r.Dst.IP.String()
		case !r.Dst.IP.IsLinkLocalUnicast():
			e.Addressing.IPv6 = r.Dst.IP.String()
		}
	}
	neighbours, err := netlink.NeighList(at.Index, netlink.FAMILY_ALL)
	if err != nil {
		return e, fmt.Errorf("neighbours of %s: %w", at.Name, err)
	}
	for _, n := range neighbours {
		if ip := n.IP.String(); ip == e.Addressing.IPv4 || ip == e.Addressing.IPv6 {
			e.MAC = n.HardwareAddr.String()
		}
	}
	return e, nil
}
