package ownproxy

import (
	"fmt"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Script is a shell script that interferes with a node, to be run on it as root; empty for an interference with its connection to the API server, which each tier has
// its own way to cut.
func Script(what candidate.Interference) string {
	return map[candidate.Interference]string{
		candidate.AddNeighbours: addNeighboursScript, candidate.FlushRules: flushScript, candidate.DropRules: dropRulesScript, candidate.BlockRules: blockRulesScript,
		candidate.DropRealServers: dropRealServersScript, candidate.AddRealServer: addRealServerScript, candidate.AddVirtualServer: addVirtualServerScript,
	}[what]
}

// flushScript deletes the tables of kube-proxy in every mode, whichever of the programs there are. Each goes at once: kube-proxy, whose partial syncs would
// take chains that are empty for its own, must not come between.
const flushScript = `
for program in iptables ip6tables; do
	command -v $program-restore >/dev/null || continue
	for table in nat filter mangle; do printf '*%s\nCOMMIT\n' $table | $program-restore -w; done
done
if command -v nft >/dev/null; then
	for family in ip ip6; do
		if nft list table $family kube-proxy >/dev/null 2>&1; then nft delete table $family kube-proxy; fi
	done
fi
if test -e /proc/net/ip_vs; then ipvsadm -C; fi
true`

// dropRulesScript deletes the rules of KUBE-SERVICES that lead to the chains of Services, all of a family at once. A rule that has gone meanwhile makes that fail.
const dropRulesScript = `
for program in iptables ip6tables; do
	command -v $program-save >/dev/null || continue
	rules=$($program-save -t nat | sed -n 's/^-A \(KUBE-SERVICES .* -j KUBE-SVC-.*\)/-D \1/p')
	if test -n "$rules"; then printf '*nat\n%s\nCOMMIT\n' "$rules" | $program-restore -w --noflush || exit; fi
done
true`

// blockRulesScript replaces the tables by ones with a chain of a name that kube-proxy uses and of another type.
// kube-proxy can neither add nor change that chain.
const blockRulesScript = `for family in ip ip6; do
	printf '%s\n' "add table $family kube-proxy" "delete table $family kube-proxy" "add table $family kube-proxy" \
		"add chain $family kube-proxy nat-prerouting { type filter hook prerouting priority 0; }" | nft -f - || exit
done`

// addNeighboursScript fills every packet filter that there is with what other programs have there. Whatever one of them cannot hold is left out, but
// each refuses both ports.
var addNeighboursScript = fmt.Sprintf(`done=
if command -v nft >/dev/null; then
	for flowtable in 'flowtable fast { hook ingress priority filter; devices = { lo }; }' ''; do printf '%%s\n' 'table inet neighbour {' \
		'comment "of another program"' \
		'set refused { type inet_service; flags interval; elements = { %[1]d comment "an element" } }' \
		'map elsewhere { type ipv4_addr : verdict; elements = { 192.0.2.7 : drop } }' \
		"$flowtable" \
		'counter seen { comment "a counter" }' \
		'chain input { type filter hook input priority -5; policy accept; tcp dport @refused counter name seen reject with tcp reset comment "a set"; tcp dport %[2]d reject with tcp reset comment "a rule"; ip saddr vmap @elsewhere; }' \
		'}' | nft -f - && done=yes && break; done # not every kernel has flowtables
	test -n "$done" || exit
fi
if command -v iptables-restore >/dev/null; then
	for program in iptables ip6tables; do
		command -v $program-restore >/dev/null || continue
		printf '%%s\n' '*filter' ':NEIGHBOUR - [0:0]' '-I INPUT -m comment --comment "of another program" -j NEIGHBOUR' \
			'-A NEIGHBOUR -p tcp -m tcp --dport %[1]d -j REJECT --reject-with tcp-reset' '-A NEIGHBOUR -p tcp -m tcp --dport %[2]d -j REJECT --reject-with tcp-reset' COMMIT \
			'*nat' ':NEIGHBOUR - [0:0]' '-A NEIGHBOUR -m comment --comment "KUBE-SVC is none of it" -j RETURN' '-A PREROUTING -j NEIGHBOUR' COMMIT | $program-restore -w --noflush || exit
	done
	done=yes
fi
if command -v ipset >/dev/null; then ipset create neighbour hash:ip,port -exist && ipset add neighbour 192.0.2.7,tcp:80 -exist; fi
test -n "$done" || { echo "there is neither nft nor iptables"; exit 1; }`, candidate.NeighbourPorts[0], candidate.NeighbourPorts[1])

// The lines of "ipvsadm -Sn" are "-A -t 10.96.0.1:443 -s rr" for a virtual server. They are "-a -t 10.96.0.1:443 -r
// 10.244.1.2:6443 -m -w 1" for a real one. The proxy goes on meanwhile: what is listed may have gone or be back, or be
// listed twice, for the kernel lists by position. So what ipvsadm says of a failure decides, not another look. What it
// says is not translated.
const (
	dropRealServersScript = `ipvsadm -Sn | grep '^-a' | while read -r _ kind virtual _ real _; do
		said=$(ipvsadm -d $kind $virtual -r $real 2>&1) || case $said in
			*"No such destination"*|*"Service not defined"*) ;;
			*) echo "$said"; exit 1;;
		esac
	done`
	addRealServerScript = `ipvsadm -Sn | grep '^-A' | while read -r _ kind virtual _; do
		case $virtual in \[*) real='[2001:db8:dead::1]:9';; *) real=192.0.2.66:9;; esac
		said=$(ipvsadm -a $kind $virtual -r $real -m -w 100 2>&1) || case $said in
			*"Destination already exists"*|*"Service not defined"*) ;;
			*) echo "$said"; exit 1;;
		esac
	done`
)

// addVirtualServerScript repeats what it says of a virtual server and of its real servers at another address.
const addVirtualServerScript = `ipvsadm -Sn | while read -r what kind virtual rest; do
	address=${virtual%:*}
	case $address in *[!0-9.]*|198.19.*) continue;; esac
	said=$(ipvsadm $what $kind 198.19.${address#*.*.}:${virtual##*:} $rest 2>&1) || case $said in
		*"already exists"*|*"Service not defined"*) ;;
		*) echo "$said"; exit 1;;
	esac
done`
