#!/usr/bin/env bash
# What the lab starts instead of CoreDNS: dns.sh -conf COREFILE. CoreDNS serves at another port, and NodeLocal DNSCache in its place, which asks CoreDNS by TCP.
# The configuration is the one of cluster/addons/dns/nodelocaldns of Kubernetes, without what has nothing to do with names of the cluster.
set -euo pipefail
upstream=10053
folder=$(dirname "$2")/nodelocaldns
mkdir -p "$folder"
sed "s/^\.:53 /.:$upstream /" "$2" >"$folder/Corefile.coredns"
setpriv --pdeathsig KILL "$NODELOCALDNS_HOME/coredns" -conf "$folder/Corefile.coredns" &
zone() { # NAME CACHE
  printf '%s:53 {\n    errors\n    cache %s\n    reload\n    loop\n    bind 127.0.0.1\n    forward . 127.0.0.1:%s {\n        force_tcp\n    }\n}\n' "$1" "$2" "$upstream"
}
{
  zone cluster.local '{
        success 9984 30
        denial 9984 5
    }'
  zone in-addr.arpa 30
  zone ip6.arpa 30
} >"$folder/Corefile.base"
cp "$folder/Corefile.base" "$folder/Corefile"
exec "$NODELOCALDNS_HOME/node-cache" -localip 127.0.0.1 -setupinterface=false -setupiptables=false -skipteardown=true -metrics-listen-address 127.0.0.1:9353 \
  -basecorefile "$folder/Corefile.base" -corefile "$folder/Corefile" -conf "$folder/Corefile"
