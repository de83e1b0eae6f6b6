#!/usr/bin/env bash
# What run.sh has the lab run instead of etcd: storage.sh BACKEND ENDPOINT DATA. It starts the database, if that is a program of its own, and kine on it. Nothing that
# is stored outlives the run, so no database waits for a disk.
set -euo pipefail
backend=$1 endpoint=$2 data=$3
case $backend in
sqlite) url="sqlite://$data/state.db?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate&_synchronous=OFF" ;;
nats)
  printf 'jetstream { store_dir: "%s", sync_interval: "1h" }\n' "$data" >"$data/nats.conf"
  url="nats://?dontListen&serverConfig=$data/nats.conf"
  ;;
t4) url="t4://$data/t4" ;;
memory) url=memory:// ;;
postgresql | mariadb) # the folder of its package, in memory: it goes with the processes, however they end
  if [ -z "${KINE_MOUNTS-}" ]; then
    KINE_MOUNTS=private exec unshare -m --propagation private "$0" "$@"
  fi
  case $backend in
  postgresql) home=/var/lib/postgresql user=postgres ;;
  mariadb) home=/var/lib/mysql user=mysql ;;
  esac
  mount -t tmpfs tmpfs "$home"
  chown "$user" "$home"
  as=(setpriv --reuid="$user" --regid="$user" --init-groups env -C "$home")
  ;;
*)
  echo "storage: there is no $backend" >&2
  exit 64
  ;;
esac
case $backend in
postgresql)
  programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
  "${as[@]}" "$programs/initdb" -D "$home/db" --auth=trust --no-sync --encoding=UTF8 >"$data/initdb.log"
  "${as[@]}" "$programs/postgres" -D "$home/db" -k "$home" -h '' -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=500 &
  server=$!
  reachable() { "${as[@]}" "$programs/psql" -h "$home" -d postgres -c '' >/dev/null 2>&1; }
  url="postgres://postgres@/kine?host=$home&sslmode=disable"
  ;;
mariadb)
  "${as[@]}" mariadb-install-db --no-defaults --datadir="$home/db" --auth-root-authentication-method=normal --skip-test-db >"$data/install.log"
  "${as[@]}" mariadbd --no-defaults --datadir="$home/db" --socket="$home/socket" --skip-networking --innodb-flush-log-at-trx-commit=0 --sync-binlog=0 --max-connections=500 &
  server=$!
  reachable() { mariadb --no-defaults --socket="$home/socket" --user=root -e '' 2>/dev/null; }
  url="mysql://root@unix($home/socket)/kine"
  ;;
*) exec kine --listen-address="$endpoint" --metrics-bind-address=0 --datastore-max-open-connections=4 --endpoint="$url" ;;
esac
trap 'kill "$server" ${kine:+"$kine"} 2>/dev/null; wait' EXIT
trap 'exit 0' TERM INT
for _ in {1..600}; do
  reachable && break
  kill -0 "$server" 2>/dev/null || exit 1
  sleep 0.1
done
# With few connections the transactions of kine would wait for each other for ever: each asks for a second one.
kine --listen-address="$endpoint" --metrics-bind-address=0 --endpoint="$url" &
kine=$!
wait -n "$server" "$kine"
