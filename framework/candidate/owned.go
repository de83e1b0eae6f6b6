package candidate

import (
	"context"
	"net/netip"
)

// ServerOwner is a ControlPlane whose API server is the candidate's own, to end and to start. That of a cluster in use is not.
type ServerOwner interface {
	// Restart stops the API server in the middle of whatever it does and starts it again on the same storage. It returns
	// once Services can be created again: a server may be reached, and ready, before it can allocate. Ranges that are named replace those that it had. It needs
	// the capability restart-control-plane.
	Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error
	// AnotherServer starts one more API server on the same storage and ranges. It returns once Services can be created
	// through that server, which ends with the lease. Feature gates of Kubernetes that are named are set for it alone.
	// It needs an exclusive lease and the capability several-api-servers.
	AnotherServer(ctx context.Context, gates map[string]bool) (Access, error)
}

// NodeOwner is a DataPlane that adds nodes, whose proxies are the check's own. The nodes of a cluster in use are nobody's to add.
type NodeOwner interface {
	// AddNode starts a further node that only this check uses, with a proxy configured as given. It needs the capability own-nodes and, unless the proxy is as on the
	// other nodes or absent, proxy-configuration. It returns when the proxy has synchronised once; with a ProxyConfiguration that is Absent, at once.
	AddNode(ctx context.Context, node Node, proxy ProxyConfiguration) (Node, error)
	// StartProxy starts the proxy of a node that AddNode has made, instead of a running one. It returns when the proxy runs, not when it has
	// synchronised. A proxy that ends within moments of its start is no error: ProxyState tells.
	StartProxy(ctx context.Context, node string, proxy ProxyConfiguration) error
	// StopProxy ends the proxy of such a node as a crash would: rules stay as they are.
	StopProxy(ctx context.Context, node string) error
	// ProxyState tells whether the proxy of such a node runs, and the end of what it has logged.
	ProxyState(ctx context.Context, node string) (ProxyState, error)
	// Interfere does something to such a node behind the proxy's back.
	Interfere(ctx context.Context, node string, what Interference) error
}

// ControllerOwner is a DataPlane whose endpoint controllers a check may end and start (capability restart-controllers). All checks share them, so that they are away
// for a short time only. The end of the lease starts them again.
type ControllerOwner interface {
	// StopControllers ends them as a crash would. It returns when they do nothing any more.
	StopControllers(ctx context.Context) error
	// StartControllers starts them again. It returns when they run, not when they have caught up.
	StartControllers(ctx context.Context) error
}

// OwnControllers returns what ends and starts the controllers of a data plane. The error is an *UnavailableError if nothing does.
func OwnControllers(plane DataPlane) (ControllerOwner, error) {
	if o, ok := plane.(ControllerOwner); ok {
		return o, nil
	}
	return nil, UnavailableHere("--tier lab or kind", "the controllers are not ones that a check may end")
}

// OwnServer returns what ends and starts the API server of a lease. The error is an *UnavailableError if nothing does.
func OwnServer(lease ControlPlane) (ServerOwner, error) {
	if o, ok := lease.(ServerOwner); ok {
		return o, nil
	}
	return nil, UnavailableHere("--tier lab", "the API server is not one that a check may end or start")
}

// OwnNodes returns what adds nodes to a data plane. The error is an *UnavailableError if nothing does.
func OwnNodes(plane DataPlane) (NodeOwner, error) {
	if o, ok := plane.(NodeOwner); ok {
		return o, nil
	}
	return nil, Unavailable("the nodes, and their proxies, are not a check's")
}
