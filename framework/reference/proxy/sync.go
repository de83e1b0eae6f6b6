package proxy

import (
	"slices"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// The periods that kube-proxy has by default (virtual-ips#optimizing-iptables-mode-performance).
const (
	defaultMinSync = time.Second
	defaultPeriod  = 30 * time.Second
)

// Start starts the proxy with a configuration; what is programmed stays. It reports whether the proxy runs: without IPVS in the kernel it
// refuses to.
func (n *Node) Start(config candidate.ProxyConfiguration) bool {
	if config.WithoutIPVS && config.Mode == "ipvs" {
		switch {
		case n.faults.On(fault.IPVSUnchecked): // it runs as if all were well, and serves nothing
		case n.faults.On(fault.IPVSFallsBack):
			config.Mode = "iptables"
		default:
			n.running = false
			return false
		}
	}
	if n.faults.On(fault.ModeIgnored) {
		config.Mode = "iptables"
	}
	if n.faults.On(fault.ConfigurationLost) && n.Own {
		config = candidate.ProxyConfiguration{Mode: config.Mode}
	}
	n.config, n.running, n.starts = config, true, n.starts+1
	n.minSync, n.period = duration(config.MinSyncPeriod, defaultMinSync), duration(config.SyncPeriod, defaultPeriod)
	for _, flag := range config.Flags { // a configuration file makes almost all flags void (proxy-config-file-wins)
		if name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); n.faults.On(fault.FlagsWin) {
			n.setByFlag(name, value)
		}
	}
	if n.faults.On(fault.MinSyncDefaultLong) && (config.MinSyncPeriod == "default" || config.MinSyncPeriod == "") {
		n.minSync = 10 * time.Second
	}
	if n.faults.On(fault.MinSyncZeroIgnored) && n.minSync == 0 {
		n.minSync = defaultMinSync
	}
	n.lastSync = time.Time{}
	if n.faults.On(fault.RestartFlushes) && n.programmed != nil {
		n.programmed = nil
		n.lastSync = farFuture
	}
	return true
}

// farFuture is later than any check.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (n *Node) setByFlag(name, value string) {
	switch name {
	case "nodeport-addresses":
		n.config.NodePortAddresses = strings.Split(value, ",")
	case "proxy-mode":
		n.config.Mode = value
	case "iptables-min-sync-period":
		n.minSync = duration(value, n.minSync)
	case "iptables-sync-period":
		n.period = duration(value, n.period)
	}
}

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

// Rewrite changes the configuration that the next start reads: a running proxy does not look at it (proxy-config-not-reloaded).
func (n *Node) Rewrite(config candidate.ProxyConfiguration) {
	if n.faults.On(fault.ConfigurationReloaded) {
		n.Start(config)
	}
}

// Stop ends the proxy; its rules stay.
func (n *Node) Stop() {
	n.running = false
	if n.faults.On(fault.StopFlushes) {
		n.programmed = nil
	}
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
	case candidate.CutOff:
		n.cutOff = true
	}
}

// Advance brings the proxy to a time: it programs what has changed, at once or when minSyncPeriod is over since the last sync, and repairs what
// others have changed once in a syncPeriod.
func (n *Node) Advance(now time.Time, current *Objects) {
	if !n.running {
		return
	}
	if !n.Own {
		if len(current.services) <= fewServices || now.Sub(n.lastSync) >= 2*time.Minute || !n.faults.On(fault.LateAmongMany) {
			n.program(now, current)
		}
		return
	}
	if n.cutOff && n.programmed != nil {
		current = n.programmed
	}
	minSync := n.minSync
	switch {
	case n.faults.On(fault.MinSyncIgnored):
		minSync = 0
	case n.faults.On(fault.ProgrammedLate):
		minSync = n.period
	}
	since := now.Sub(n.lastSync)
	changed := n.programmed == nil || n.programmed.Version != current.Version
	switch {
	case n.lastSync == farFuture, n.ipvs() && n.programmed != nil && n.faults.On(fault.IPVSNotFollowing):
	case changed && since >= minSync:
		if n.faults.On(fault.MergedChangesLost) && n.programmed != nil && current.Version > n.programmed.Version+20 {
			n.lastSync, n.syncs = now, n.syncs+1 // a burst, of which it believes that it was programmed
			n.programmed = n.programmed.as(current.Version)
			return
		}
		n.program(now, current)
	case since >= n.period && !n.faults.On(fault.PeriodicSyncMissing):
		n.program(now, current)
	}
}

// as is the same with another version.
func (o *Objects) as(version uint64) *Objects {
	c := *o
	c.Version = version
	return &c
}

func (n *Node) program(now time.Time, current *Objects) {
	if n.programmed == current && !n.flushed && !n.dropped && !n.twins && n.realServers == soundRealServers {
		if now.Sub(n.lastSync) >= n.period && n.Own {
			n.lastSync, n.syncs = now, n.syncs+1
		}
		return
	}
	if n.blocked {
		if n.programmed.Version != current.Version && n.pending.IsZero() {
			n.pending = now
		}
		return
	}
	n.pending = time.Time{}
	if n.programmed != nil && n.programmed.Version != current.Version {
		n.changes++
		if n.Own && n.faults.On(fault.MinSyncIgnored) {
			n.syncs += int(current.Version - n.programmed.Version) // one for each change
		}
	}
	if n.flushed && n.programmed != nil && n.programmed.Version != current.Version {
		n.failures++ // an update refers to rules that are no longer there; the next one writes everything
	}
	first := n.programmed == nil
	earlier := n.programmed
	n.programmed = current
	n.lastSync, n.syncs = now, n.syncs+1
	if n.flushed && (first || !n.faults.On(fault.FlushNotRepaired) && (n.repairs == 0 || !n.faults.On(fault.FlushRepairedOnce))) {
		n.flushed, n.repairs = false, n.repairs+1
	}
	if !n.faults.On(fault.DroppedRulesNotRepaired) {
		n.dropped = false
	}
	if !n.faults.On(fault.VirtualServersKept) {
		n.twins = false
	}
	if !n.faults.On(fault.RealServersNotRepaired) {
		n.realServers = soundRealServers
	}
	if n.faults.On(fault.PartialSyncLoses) && earlier != nil {
		n.programmed = current.without(earlier)
	}
}

// without is where a fault writes only what has changed and so loses what has not: every second Service that was there before.
func (o *Objects) without(earlier *Objects) *Objects {
	lost := map[string]bool{}
	for i, s := range earlier.services {
		if i%2 == 0 {
			lost[string(s.UID)] = true
		}
	}
	c := *o
	c.byTarget = map[target][]*destination{}
	for t, ds := range o.byTarget {
		kept := slices.DeleteFunc(slices.Clone(ds), func(d *destination) bool { return lost[string(d.port.service.UID)] })
		if len(kept) > 0 {
			c.byTarget[t] = kept
		}
	}
	return &c
}

// realServers is the state that others have left the IPVS real servers in.
type realServers int

const (
	soundRealServers realServers = iota
	droppedRealServers
	addedRealServer
)
