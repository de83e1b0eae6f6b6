package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of who makes load balancers.
var (
	BalancersNeverMade = New("load-balancers-never-made", "No load balancer is made for a Service of type LoadBalancer.",
		spec.ProxyLoadBalancerCreated, spec.ProxyLoadBalancerClassDefault, spec.ProxyLoadBalancerCleanupFinalizer)
	BalancersOfAnyClass = New("load-balancers-of-any-class", "The default implementation makes load balancers for Services of every class.",
		spec.ProxyLoadBalancerClassIgnored)
	BalancerFinalizerMissing = New("load-balancer-finalizer-missing", "A Service with a load balancer has no finalizer that has it cleaned up.",
		spec.ProxyLoadBalancerCleanupFinalizer)
	BalancerFinalizerStays = New("load-balancer-finalizer-stays", "A deleted Service keeps the finalizer of its load balancer.",
		spec.ProxyLoadBalancerCleanupDeletion)
	BalancerLeftBehind = New("load-balancer-left-behind", "The finalizer of a load balancer is taken away while the load balancer is still there.",
		spec.ProxyLoadBalancerCleanupDeletion)
	BalancerOutlivesType = New("load-balancer-outlives-type", "A Service that becomes another type keeps the load balancer and its finalizer.",
		spec.ProxyLoadBalancerCleanupType)
	BalancerServesOn = New("load-balancer-serves-on", "A load balancer serves on when its Service is of another type, of which the status and the finalizers say nothing.",
		spec.ProxyLoadBalancerCleanupType)
	BalancerNotRemade = New("load-balancer-not-remade", "A Service that has had a load balancer gets none again when it is of that type once more.",
		spec.ProxyLoadBalancerCreated, spec.ProxyLoadBalancerCleanupType)
	BalancerUsesExcluded = New("load-balancer-uses-excluded-nodes", "Load balancers use nodes that are excluded from them.",
		spec.ProxyLoadBalancerNodeExclusion)
	BalancerAsksNobody = New("load-balancer-asks-no-health-check", "Load balancers of policy Local use nodes without endpoints.",
		spec.ProxyLoadBalancerLocal)
	BalancerKeepsFirstPolicy = New("load-balancer-keeps-first-policy", "A load balancer uses nodes without endpoints once its Service becomes Local.",
		spec.ProxyLoadBalancerLocal)
	BalancerKeepsDeletedNodes = New("load-balancer-keeps-deleted-nodes", "A load balancer goes on to use Nodes that were deleted.",
		spec.ProxyLoadBalancerNodeDeleted)
	BalancerRemadeByNodes = New("load-balancer-remade-by-nodes", "When a Node changes, the load balancer of a Service that is being deleted is made again.",
		spec.ProxyLoadBalancerCleanupDeletion)
	BalancerAsksOnce = New("load-balancer-asks-health-check-once", "A load balancer of policy Local goes on to use a node that has lost its endpoints.",
		spec.ProxyLoadBalancerLocal)
)
