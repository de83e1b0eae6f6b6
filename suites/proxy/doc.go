// Package proxy holds the checks of service proxying: traffic, and the endpoints that it goes to.
//
// Most checks send traffic. They start pods on the nodes that all checks share, and expose them. A matrix of cases
// demands who is answered by whom, over TCP and UDP, from pods, from the hosts of nodes and from outside of the
// cluster. The destinations are cluster IPs, node ports, external IPs and load-balancer addresses. Demands on chance
// are statistical, and silence counts only beside controls. What may be done in more than one way is tested against
// what the implementation declares.
//
// Where a check is about the proxy alone, it makes the EndpointSlices itself, so that no controller stands between the
// demand and what is judged. The checks of endpoint controllers read EndpointSlices instead, and send traffic only
// where the requirement speaks of it. Controllers and proxies are asynchronous. A demand has check.ConvergenceBound to
// come true. That something does not come about is looked at after something later has.
//
// Requirements that only kube-proxy has ask for the capability kube-proxy, or for the mode that they are about.
package proxy
