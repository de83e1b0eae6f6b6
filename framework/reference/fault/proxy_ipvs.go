package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of the ipvs mode.
var (
	IPVSUnchecked = New("ipvs-unchecked", "Without IPVS in the kernel the proxy runs as if all were well.",
		spec.ProxyIPVSModulesVerified, spec.ProxyIPVSExits)
	IPVSFallsBack = New("ipvs-falls-back", "Without IPVS in the kernel the proxy runs in iptables mode.",
		spec.ProxyIPVSExits)
	VirtualServersKept = New("virtual-servers-kept", "A virtual server that others have added stays.",
		spec.ProxyIPVSDesiredState)
	RealServersNotRepaired = New("real-servers-not-repaired", "What others do to the real servers stays.",
		spec.ProxyIPVSPeriodicSync, spec.ProxyIPVSDesiredState)
	IPVSNotFollowing = New("ipvs-not-following", "In ipvs mode changes of endpoints are not followed.",
		spec.ProxyIPVSWatches)
	IPVSNotServed = New("ipvs-not-served", "In ipvs mode virtual IPs are not served.",
		spec.ProxyIPVSBalances, spec.ProxyIPVSWatches)
	SchedulerRRRandom = New("scheduler-rr-random", "Scheduler rr chooses at random.",
		spec.ProxyIPVSSchedulerRr)
	SchedulerLCRandom = New("scheduler-lc-random", "Scheduler lc chooses at random.",
		spec.ProxyIPVSSchedulerLc)
	SchedulerDHRandom = New("scheduler-dh-random", "Scheduler dh chooses at random.",
		spec.ProxyIPVSSchedulerDh)
	SchedulerSHRandom = New("scheduler-sh-random", "Scheduler sh chooses at random.",
		spec.ProxyIPVSSchedulerSh)
	SchedulerSEDRandom = New("scheduler-sed-random", "Scheduler sed chooses at random.",
		spec.ProxyIPVSSchedulerSed)
	SchedulerNQRandom = New("scheduler-nq-random", "Scheduler nq chooses at random.",
		spec.ProxyIPVSSchedulerNq)
)
