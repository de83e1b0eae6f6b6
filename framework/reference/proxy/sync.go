package proxy

import (
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// The periods that kube-proxy has by default (virtual-ips#optimizing-iptables-mode-performance).
const (
	defaultMinSync = time.Second
	defaultPeriod  = 30 * time.Second
)

// Start starts the proxy with a configuration. It reports whether the proxy runs.
func (n *Node) Start(config candidate.ProxyConfiguration) bool {
	if !n.verified.Do(&config) {
		n.running = false
		return false
	}
	n.configured.Do(n, &config)
	n.started.Do(n)
	return true
}

// Rewrite changes the configuration that the next start reads.
func (n *Node) Rewrite(config candidate.ProxyConfiguration) { n.rewritten.Do(n, &config) }

// Stop ends the proxy.
func (n *Node) Stop() { n.stopped.Do(n) }

// Rules for the start and the end of the proxy.
var (
	// Without IPVS in the kernel the proxy does not run in ipvs mode.
	verified = rule.New("proxy-ipvs-verified", func(config *candidate.ProxyConfiguration) bool {
		return !config.WithoutIPVS || config.Mode != "ipvs"
	}, spec.ProxyIPVSModulesVerified, spec.ProxyIPVSExits)

	// The configuration file is read. It makes almost all flags void.
	configured = rule.New("proxy-configured-by-file", func(n *Node, config *candidate.ProxyConfiguration) {
		n.config = *config
		n.minSync, n.period = n.minSyncPeriod.Do(config), duration(config.SyncPeriod, defaultPeriod)
	}, spec.ProxyModeConfigured, spec.ProxyConfigFileWins, spec.ProxySyncConfigurable)

	minSyncPeriod = rule.New("proxy-min-sync-period", func(config *candidate.ProxyConfiguration) time.Duration {
		return duration(config.MinSyncPeriod, defaultMinSync)
	}, spec.ProxySyncMinPeriod, spec.ProxySyncMinPeriodDefault, spec.ProxySyncMinPeriodZero)

	// A running proxy does not look at its configuration again.
	rewritten = rule.New("proxy-configuration-not-reloaded", func(*Node, *candidate.ProxyConfiguration) {}, spec.ProxyConfigNotReloaded)

	// What is programmed stays.
	started = rule.New("proxy-start-keeps-rules", func(n *Node) {
		n.running, n.starts, n.lastSync = true, n.starts+1, time.Time{}
	}, spec.ProxyRestartKeepsTraffic)

	// What has been missed is followed.
	reconnected = rule.New("proxy-reconnected-follows", func(*Node) {}, spec.ProxyGapFollowed)

	// An API server that was started again is followed as it was before.
	serverMetAgain = rule.New("proxy-restarted-server-followed", func(*Node) {}, spec.ProxyGapFollowed)

	// Watches that the API server can no longer continue are begun anew, with everything that there is.
	listedAnew = rule.New("proxy-expired-watch-lists-anew", func(*Node) {}, spec.ProxyGapFollowed)

	// Rules of other programs are none of the proxy's business.
	neighboursKept = rule.New("proxy-neighbours-kept", func(*Node) {}, spec.ProxyNeighboursUntouched)

	stopped = rule.New("proxy-end-keeps-rules", func(n *Node) { n.running = false }, spec.ProxyRestartKeepsTraffic)
)

func duration(text string, byDefault time.Duration) time.Duration {
	if text == "" || text == "default" {
		return byDefault
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return byDefault
	}
	return d
}

// MeetServerAgain tells the proxy that the API server was started again. One that is cut off learns of it when it is reconnected.
func (n *Node) MeetServerAgain() {
	if n.cutOff {
		n.expired = true
		return
	}
	n.serverMetAgain.Do(n)
}

// Running reports whether the proxy runs.
func (n *Node) Running() bool { return n.running }

// Interfere does something to the node behind the proxy's back.
func (n *Node) Interfere(what candidate.Interference) {
	switch what {
	case candidate.FlushRules:
		n.flushed, n.blocked = true, false
	case candidate.BlockRules:
		n.flushed, n.blocked = true, true
	case candidate.DropRules:
		n.dropped = true
	case candidate.DropRealServers:
		n.realServers = droppedRealServers
	case candidate.AddRealServer:
		n.realServers = addedRealServer
	case candidate.AddVirtualServer:
		n.twins = true
	case candidate.CutOff, candidate.Disconnect:
		n.cutOff = true
	case candidate.Reconnect:
		n.cutOff = false
		n.reconnected.Do(n)
		if n.expired {
			n.expired = false
			n.listedAnew.Do(n)
		}
	case candidate.AddNeighbours:
		n.neighbours = true
	}
}

// Refuses reports whether rules of another program on the node refuse connections to the port (candidate.AddNeighbours).
func (n *Node) Refuses(port int) bool {
	return n.neighbours && slices.Contains(candidate.NeighbourPorts[:], port)
}

// Advance brings the proxy to a time.
func (n *Node) Advance(now time.Time, current *Objects) {
	if !n.running {
		return
	}
	since := now.Sub(n.lastSync)
	if !n.Own {
		if n.sharedDue.Do(n, current, since) {
			n.synced.Do(n, now, current)
		}
		return
	}
	if n.cutOff && n.programmed != nil {
		current = n.programmed
	}
	if n.changeDue.Do(n, current, since) || n.periodDue.Do(n, current, since) {
		n.synced.Do(n, now, current)
	}
}

// Rules for when the proxy programs the kernel.
var (
	// What has changed is programmed at once, or when minSyncPeriod is over since the last sync.
	changeDue = rule.New("proxy-sync-of-change", func(n *Node, current *Objects, since time.Duration) bool {
		return n.changed(current) && since >= n.minSync
	}, spec.ProxySyncMinPeriod, spec.ProxySyncMinPeriodZero, spec.ProxySyncMinPeriodDelay, spec.ProxySyncMergesChanges, spec.ProxyIPVSWatches)

	// What others have changed is repaired once in a syncPeriod.
	periodDue = rule.New("proxy-sync-of-period", func(n *Node, _ *Objects, since time.Duration) bool {
		return since >= n.period
	}, spec.ProxySyncPeriodInterference, spec.ProxyIPVSPeriodicSync, spec.ProxyIPVSDesiredState)

	// The proxies of the shared nodes are always up to date.
	sharedDue = rule.New("proxy-sync-of-shared-nodes", func(*Node, *Objects, time.Duration) bool {
		return true
	}, spec.ProxyScale, spec.ProxyServiceAdded)

	synced = rule.New("proxy-sync", program, spec.ProxySyncMergesChanges, spec.ProxySyncMinPeriodDelay)
)

// changed reports whether the objects are others than those that are programmed.
func (n *Node) changed(current *Objects) bool {
	return n.programmed == nil || n.programmed.Version != current.Version
}

// program brings the kernel's rules in step, if nobody keeps the proxy from it.
func program(n *Node, now time.Time, current *Objects) {
	earlier := n.programmed
	if earlier == current && !n.flushed && !n.dropped && !n.twins && n.realServers == soundRealServers {
		if now.Sub(n.lastSync) >= n.period && n.Own {
			n.lastSync, n.syncs = now, n.syncs+1
		}
		return
	}
	update := earlier != nil && n.changed(current)
	if n.blocked {
		if update && n.pending.IsZero() {
			n.pending = now
		}
		return
	}
	n.pending = time.Time{}
	if update {
		n.changes++
		if n.flushed {
			n.failures++ // it refers to rules that are no longer there; the next one writes everything
		}
	}
	for i := range n.writes {
		n.writes[i].Do(n, earlier, current)
	}
	n.neighboursKept.Do(n)
	n.lastSync, n.syncs = now, n.syncs+1
}

// Rules for what a sync writes.
var (
	servicesWritten = rule.New("proxy-sync-writes-every-service", func(n *Node, _, current *Objects) {
		n.programmed = current
	}, spec.ProxyPartialSyncComplete, spec.ProxyServiceRemoved, spec.ProxyGapFollowed)

	flushRepaired = rule.New("proxy-sync-repairs-flushed-rules", func(n *Node, _, _ *Objects) {
		n.flushed = false
	}, spec.ProxySyncPeriodInterference, spec.ProxyNftablesFailedUpdateFull)

	dropRepaired = rule.New("proxy-sync-repairs-dropped-rules", func(n *Node, _, _ *Objects) {
		n.dropped = false
	}, spec.ProxySyncPeriodInterference)

	virtualServersCleared = rule.New("proxy-sync-clears-foreign-virtual-servers", func(n *Node, _, _ *Objects) {
		n.twins = false
	}, spec.ProxyIPVSDesiredState)

	realServersRepaired = rule.New("proxy-sync-repairs-real-servers", func(n *Node, _, _ *Objects) {
		n.realServers = soundRealServers
	}, spec.ProxyIPVSPeriodicSync, spec.ProxyIPVSDesiredState)
)

// realServers is the state that others have left the IPVS real servers in.
type realServers int

const (
	soundRealServers realServers = iota
	droppedRealServers
	addedRealServer
)
