// Package allocation holds the checks of how ClusterIPs and node ports are handed out: bands, dynamic and static
// allocation, conflicts, exhaustion and release.
package allocation
