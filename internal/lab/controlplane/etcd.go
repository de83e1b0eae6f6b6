package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/blang/semver/v4"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// Etcd is the storage that all API servers of a lab share, each under a prefix of its own.
type Etcd struct {
	Process *process.Process
	// endpoint is what kube-apiserver is given.
	endpoint string
}

// StartTimeout bounds how long a server may take to become ready. A loaded machine needs many times the usual two
// seconds, and a guest more. A caller can give up earlier.
const StartTimeout = 5 * time.Minute

// attempts is how often a server is started anew because another program was faster to take its port.
const attempts = 5

// StartEtcd starts etcd with its data in a new folder of d, and waits until it listens.
func StartEtcd(ctx context.Context, b *programs.Binaries, d *process.RunDir, detached bool) (*Etcd, error) {
	var err error
	for range attempts {
		var e *Etcd
		if e, err = tryEtcd(ctx, b, d, detached); err == nil {
			return e, nil
		}
		if !errors.Is(err, process.ErrPortTaken) {
			break
		}
	}
	return nil, err
}

func tryEtcd(ctx context.Context, b *programs.Binaries, d *process.RunDir, detached bool) (_ *Etcd, err error) {
	data, err := os.MkdirTemp(d.Path, "etcd-")
	if err != nil {
		return nil, err
	}
	network, client, peer, err := etcdAddresses(data, b.EtcdVersion)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if network == "unix" {
		scheme = "unix"
	}
	e := &Etcd{endpoint: scheme + "://" + client}
	c := process.Command{Name: "etcd", Path: b.Path(programs.Etcd), Log: data + ".log", Detached: detached, Args: []string{
		"--data-dir=" + data + "/data",
		"--listen-client-urls=" + e.endpoint,
		"--listen-peer-urls=" + scheme + "://" + peer,
		// Nobody follows what a single member says of itself, and before v3.7 these must be a host and a port.
		"--advertise-client-urls=" + nowhere,
		"--initial-advertise-peer-urls=" + nowhere,
		"--initial-cluster=default=" + nowhere,
		"--unsafe-no-fsync",              // nothing here outlives the machine
		"--quota-backend-bytes=" + quota, // filling large ranges leaves many revisions between two compactions
		"--log-level=warn",
	}}
	if own := b.Servers.EtcdCommand; own != "" {
		if err := os.Mkdir(data+"/data", 0o700); err != nil {
			return nil, err
		}
		c.Name, c.Path, c.Foreign = "etcd command", process.Shell, true
		c.Args = process.ShellLine(process.Fill(own, "{endpoint}", e.endpoint, "{data}", data+"/data"))
		c.Environment = d.Mark()
	}
	if e.Process, err = process.Start(c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.Process.Kill()
			d.Forget(e.Process)
		}
	}()
	if err := d.Add(e.Process); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, fmt.Errorf("etcd does not listen after %s", StartTimeout))
	defer cancel()
	for {
		var dialer net.Dialer
		if conn, err := dialer.DialContext(ctx, network, client); err == nil {
			conn.Close()
			return e, nil
		}
		select {
		case <-e.Process.Done:
			return nil, e.Process.StartError()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for etcd: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// nowhere is an address that nobody listens on.
const nowhere = "http://127.0.0.1:1"

// quota is the size in bytes that the storage may reach.
const quota = "8589934592"

// maxSocketPath is the length of the path of a Unix socket that all systems take.
const maxSocketPath = 100

// etcdAddresses chooses what etcd listens on: Unix sockets beside its data, or loopback ports where such sockets
// cannot be used. Before v3.6 the URL of a socket must be a host and a port, not a path (types.NewURLs of etcd).
func etcdAddresses(data, version string) (network, client, peer string, err error) {
	client, peer = data+"/client", data+"/peer"
	v, err := semver.ParseTolerant(version)
	old := version != "" && (err != nil || v.LT(semver.Version{Major: 3, Minor: 6}))
	if runtime.GOOS != "windows" && len(client) <= maxSocketPath && !old {
		return "unix", client, peer, nil
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", "", "", err
	}
	return "tcp", Loopback(ports[0]), Loopback(ports[1]), nil
}

// Loopback is the address of a port of this machine.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// The ports that servers of a lab listen on. They are below the default node ports and the ports that systems give to
// outgoing connections, so that a restarted server finds its port free.
const firstPort, lastPort = 20000, 29999

// freePorts returns n different loopback ports that nobody listens on at this moment.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", Loopback(port))
		if err != nil {
			continue
		}
		defer l.Close() // all at the end, so that none is chosen twice
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no free loopback port between %d and %d", firstPort, lastPort)
}
