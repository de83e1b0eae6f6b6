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
postgresql | mariadb)
  home=$(mktemp -d "/tmp/kine-$backend.XXXXXX") # a folder that the user of the database can reach
  end() {
    kill "$server" "${kine-}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$home"
  }
  ;;
*)
  echo "storage: there is no $backend" >&2
  exit 64
  ;;
esac
case $backend in
postgresql)
  programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -1)
  chown postgres "$home"
  as=(setpriv --reuid=postgres --regid=postgres --init-groups env -C "$home")
  "${as[@]}" "$programs/initdb" -D "$home/db" --auth=trust --no-sync --encoding=UTF8 >"$data/initdb.log"
  "${as[@]}" "$programs/postgres" -D "$home/db" -k "$home" -h '' -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=50 &
  server=$!
  reachable() { "${as[@]}" "$programs/psql" -h "$home" -d postgres -c '' >/dev/null 2>&1; }
  url="postgres://postgres@/kine?host=$home&sslmode=disable"
  ;;
mariadb)
  chown mysql "$home"
  as=(setpriv --reuid=mysql --regid=mysql --init-groups env -C "$home")
  "${as[@]}" mariadb-install-db --no-defaults --datadir="$home/db" --auth-root-authentication-method=normal --skip-test-db >"$data/install.log"
  "${as[@]}" mariadbd --no-defaults --datadir="$home/db" --socket="$home/socket" --skip-networking --innodb-flush-log-at-trx-commit=0 --sync-binlog=0 &
  server=$!
  reachable() { mariadb --no-defaults --socket="$home/socket" --user=root -e '' 2>/dev/null; }
  url="mysql://root@unix($home/socket)/kine"
  ;;
*) exec kine --listen-address="$endpoint" --metrics-bind-address=0 --datastore-max-open-connections=4 --endpoint="$url" ;;
esac
trap end EXIT
trap 'exit 0' TERM INT
for _ in {1..600}; do
  reachable && break
  kill -0 "$server" 2>/dev/null || exit 1
  sleep 0.1
done
kine --listen-address="$endpoint" --metrics-bind-address=0 --datastore-max-open-connections=8 --endpoint="$url" &
kine=$!
wait -n "$server" "$kine"
