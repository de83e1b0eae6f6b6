package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of how a proxy keeps rules in step.
var (
	MinSyncIgnored = New("min-sync-period-ignored", "Every change is programmed by itself, whatever minSyncPeriod says.",
		spec.ProxySyncMinPeriod, spec.ProxySyncMergesChanges)
	MinSyncZeroIgnored = New("min-sync-period-zero-ignored", "A minSyncPeriod of 0s is taken for the default.",
		spec.ProxySyncMinPeriodZero)
	MinSyncDefaultLong = New("min-sync-period-default-long", "minSyncPeriod is ten seconds by default.",
		spec.ProxySyncMinPeriodDefault)
	MergedChangesLost = New("merged-changes-lost", "Of many changes at a time, those that were merged are lost.",
		spec.ProxySyncMergesChanges, spec.ProxySyncMinPeriodDelay)
	ProgrammedLate = New("changes-programmed-late", "A change waits for the next periodic sync.",
		spec.ProxySyncMinPeriodDelay, spec.ProxySyncMinPeriodDefault)
	PeriodicSyncMissing = New("periodic-sync-missing", "Nothing is programmed unless something changes.",
		spec.ProxySyncPeriodInterference, spec.ProxyIPVSPeriodicSync, spec.ProxyIPVSDesiredState)
	FlushNotRepaired = New("flushed-rules-not-repaired", "Rules that somebody has flushed do not come back.",
		spec.ProxySyncPeriodInterference, spec.ProxyNftablesFailedUpdateFull)
	FlushRepairedOnce = New("flushed-rules-repaired-once", "Rules that somebody flushes a second time do not come back.",
		spec.ProxySyncPeriodInterference)
	DroppedRulesNotRepaired = New("dropped-rules-not-repaired", "Single rules that somebody has deleted do not come back.",
		spec.ProxySyncPeriodInterference)
	PartialSyncLoses = New("partial-sync-loses-services", "An update of some Services loses others.",
		spec.ProxyPartialSyncComplete, spec.ProxyClusterIPReachable)
	SyncMetricMissing = New("sync-metric-missing", "There is no metric of how long syncs take.",
		spec.ProxySyncDurationMetric, spec.ProxySyncMinPeriod)
	SyncMetricFrozen = New("sync-metric-frozen", "The metric of how long syncs take counts the first one only.",
		spec.ProxySyncDurationMetric)
	RestoreMetricsMissing = New("restore-metrics-missing", "There are no metrics of failed restores.",
		spec.ProxyRestoreFailuresMetric, spec.ProxyPartialRestoreFailuresMetric)
	RestoreFailuresGrow = New("restore-failures-grow", "Restores fail, and are counted.",
		spec.ProxyRestoreFailuresNone, spec.ProxyRestoreFailuresMetric, spec.ProxyPartialRestoreFailuresMetric)
	NoLocalMetricZero = New("no-local-endpoints-metric-zero", "The metric of Services without local endpoints is always zero.",
		spec.ProxyNoLocalEndpointsMetric)
	ProgrammingMetricFrozen = New("programming-metric-frozen", "The metric of network programming counts nothing.",
		spec.ProxyProgrammingDurationMetric)
	StartedProxyKeepsGone = New("started-proxy-keeps-gone", "A proxy that starts again goes on to serve what went while it did not run.",
		spec.ProxyGapFollowed)
	StartedProxyRefuses = New("started-proxy-refuses", "A proxy that starts again refuses the first connections to each Service that it has served before.",
		spec.ProxyRestartKeepsTraffic)
	OneNodeStopsFollowing = New("one-node-stops-following", "One node of several follows no change.",
		spec.ProxyServiceAdded, spec.ProxyClusterIPReachable)
	RestartCutsFurtherSlices = New("restart-cuts-further-slices", "A proxy that starts cuts the connections to all endpoints of a Service but the first that it sees.",
		spec.ProxyRestartKeepsTraffic)
	ReconnectedKeepsGone = New("reconnected-proxy-keeps-gone", "A proxy goes on to serve what went while it was cut off from the API server.",
		spec.ProxyGapFollowed)
	ReconnectedDeaf = New("reconnected-proxy-deaf", "A proxy that was cut off from the API server follows nothing any more.",
		spec.ProxyGapFollowed)
	ExpiredWatchKeepsGone = New("expired-watch-keeps-gone", "A proxy whose watches have expired goes on to serve what went meanwhile.",
		spec.ProxyGapFollowed)
	ExpiredWatchDeaf = New("expired-watch-deaf", "A proxy whose watches have expired follows nothing any more.",
		spec.ProxyGapFollowed)
	RestartedServerUnheard = New("restarted-server-unheard", "A proxy follows nothing any more once the API server was started again.",
		spec.ProxyGapFollowed)
	NeighboursFlushed = New("neighbours-flushed", "A proxy removes the rules of other programs when it writes its own.",
		spec.ProxyNeighboursUntouched)
	NeighboursDisturb = New("neighbours-disturb", "A proxy writes nothing any more once another program has rules in the packet filter.",
		spec.ProxyNeighboursUntouched)
	RemovalsLinger = New("removals-linger", "What goes is served for another 15 seconds, by a part of the new connections.",
		spec.ProxyChangeLatency)
	ProxyAwaitsAddress = New("proxy-awaits-address", "A proxy serves nothing until its Node has an address.",
		spec.ProxyStartBeforeNode)
	ProxyAwaitsNode = New("proxy-awaits-node", "A proxy serves nothing until its Node exists.",
		spec.ProxyStartBeforeNode)
	ZoneChangeMissed = New("zone-change-missed", "A proxy does not follow the zone of its Node once it has started.",
		spec.ProxyNodeZoneFollowed)
)
