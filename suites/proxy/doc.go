// Package proxy holds the checks of service proxying: traffic, and the endpoints that it goes to.
//
// Most checks send traffic. They start pods on the nodes that all checks share, expose them, and demand by a matrix of cases who is
// answered by whom: over TCP and UDP, from pods, from the hosts of nodes and from outside of the cluster, at cluster IPs, node ports,
// external IPs and load-balancer addresses. Demands on chance are statistical, silence counts only beside controls, and what may be done in
// more than one way is tested against what the implementation declares.
//
// Where a check is about the proxy alone, it makes the EndpointSlices itself, so that no controller stands between the demand and what
// is judged. The checks of endpoint controllers read EndpointSlices instead, and send traffic only where the requirement speaks of it.
// Controllers and proxies are asynchronous: a demand has check.ConvergenceBound to come true, and that something does not come
// about is looked at after something later has.
//
// Requirements that only kube-proxy has ask for the capability kube-proxy, or for the mode that they are about.
package proxy
